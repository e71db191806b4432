#include "fs/tree/output/powers_of_ten.h"

#include <pthread.h>
#include <stdbool.h>

static struct fs_power_of_ten powers[FS_MAX_POWER_OF_TEN - FS_MIN_POWER_OF_TEN + 1];

/*
 * Powers up to this one are enough for floats. They are computed first: the others are longer
 * numbers and take ten times as long.
 */
#define MAX_SHORT_POWER 64

/* A natural number of n words, the lowest first. 2 * 10^324 is below 2^1078. */
struct natural {
    int n;
    uint64_t words[17];
};

static void multiply(struct natural *number, uint64_t factor)
{
    uint64_t carry = 0;

    for (int i = 0; i < number->n; i++) {
        const unsigned __int128 product = (unsigned __int128)number->words[i] * factor + carry;

        number->words[i] = (uint64_t)product;
        carry = (uint64_t)(product >> 64);
    }
    if (carry > 0)
        number->words[number->n++] = carry;
}

static bool is_less(const struct natural *a, const struct natural *b)
{
    int i = a->n - 1;

    if (a->n != b->n)
        return a->n < b->n;
    while (i > 0 && a->words[i] == b->words[i])
        i--;
    return a->words[i] < b->words[i];
}

/* Subtract `other`, which is not larger. */
static void subtract(struct natural *number, const struct natural *other)
{
    bool borrow = false;

    for (int i = 0; i < number->n; i++) {
        const uint64_t a = number->words[i], b = i < other->n ? other->words[i] : 0;

        number->words[i] = a - b - borrow;
        borrow = a < b || (a == b && borrow);
    }
    while (number->n > 1 && number->words[number->n - 1] == 0)
        number->n--;
}

/* Return 2^127 * numerator / denominator, rounded up; the quotient is from 1 to below 2. */
static struct fs_power_of_ten divide(struct natural numerator, const struct natural *denominator)
{
    unsigned __int128 quotient = 0;

    for (int bit = 0; bit < 128; bit++) {
        const bool is_one = !is_less(&numerator, denominator);

        if (is_one)
            subtract(&numerator, denominator);
        quotient = quotient << 1 | is_one;
        multiply(&numerator, 2);
    }
    quotient += numerator.n > 1 || numerator.words[0] > 0;
    return (struct fs_power_of_ten){(uint64_t)(quotient >> 64), (uint64_t)quotient};
}

/* Compute the powers whose exponents, without their signs, are from `first` to `last`. */
static void compute(int first, int last)
{
    /* 10^k, the largest power of two up to it, and the one after that */
    struct natural ten = {1, {1}}, binary = {1, {1}}, next = {1, {2}};

    for (int k = 0; k <= last; k++) {
        for (; !is_less(&ten, &next); multiply(&next, 2))
            binary = next;
        if (k >= first)
            powers[k - FS_MIN_POWER_OF_TEN] = divide(ten, &binary);
        if (k >= first && k > 0 && -k >= FS_MIN_POWER_OF_TEN)
            powers[-k - FS_MIN_POWER_OF_TEN] = divide(next, &ten);
        multiply(&ten, 10);
    }
}

static void compute_short(void)
{
    compute(0, MAX_SHORT_POWER);
}

static void compute_long(void)
{
    compute(MAX_SHORT_POWER + 1, FS_MAX_POWER_OF_TEN);
}

struct fs_power_of_ten fs_power_of_ten(int k)
{
    static pthread_once_t once_short = PTHREAD_ONCE_INIT, once_long = PTHREAD_ONCE_INIT;
    const bool is_long = k > MAX_SHORT_POWER || k < -MAX_SHORT_POWER;

    pthread_once(is_long ? &once_long : &once_short, is_long ? compute_long : compute_short);
    return powers[k - FS_MIN_POWER_OF_TEN];
}
