#include "fs/tree/output/powers_of_ten.h"

#include <pthread.h>
#include <stdbool.h>

static struct fs_power_of_ten powers[FS_MAX_POWER_OF_TEN - FS_MIN_POWER_OF_TEN + 1];
static pthread_once_t once = PTHREAD_ONCE_INIT;

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

static void compute(void)
{
    /* 10^k, the largest power of two up to it, and the one after that */
    struct natural ten = {1, {1}}, binary = {1, {1}}, next = {1, {2}};

    for (int k = 0; k <= FS_MAX_POWER_OF_TEN; k++) {
        for (; !is_less(&ten, &next); multiply(&next, 2))
            binary = next;
        powers[k - FS_MIN_POWER_OF_TEN] = divide(ten, &binary);
        if (k > 0 && -k >= FS_MIN_POWER_OF_TEN)
            powers[-k - FS_MIN_POWER_OF_TEN] = divide(next, &ten);
        multiply(&ten, 10);
    }
}

struct fs_power_of_ten fs_power_of_ten(int k)
{
    pthread_once(&once, compute);
    return powers[k - FS_MIN_POWER_OF_TEN];
}
