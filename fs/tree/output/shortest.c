#include "fs/tree/output/shortest.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>

/* ---- integers ---- */

unsigned fs_count_digits(uint64_t number)
{
    return (unsigned)snprintf(NULL, 0, "%" PRIu64, number);
}

size_t fs_write_unsigned(uint64_t number, char *out)
{
    char digits[20], *at = digits + sizeof digits;
    size_t length;

    do
        *--at = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    length = (size_t)(digits + sizeof digits - at);
    memcpy(out, at, length);
    return length;
}

size_t fs_write_signed(int64_t number, char *out)
{
    if (number >= 0)
        return fs_write_unsigned((uint64_t)number, out);
    *out = '-';
    return 1 + fs_write_unsigned(-(uint64_t)number, out + 1);
}

/* ---- powers of ten ---- */

enum { MIN_POWER = -292, MAX_POWER = 324 };

/* 10^k * 2^(127 - floor(log2(10^k))), rounded up: the top bit is set. */
struct power_of_ten {
    uint64_t high, low;
};

static struct power_of_ten powers[MAX_POWER - MIN_POWER + 1];

/* A power with a third word, so that the errors of all steps stay below the first two. */
#define WORDS 3

/* Multiply by 10, without the power of two. The lowest word is first. */
static void multiply_by_ten(uint64_t words[WORDS])
{
    uint64_t carry = 0;
    int shift;

    for (int i = 0; i < WORDS; i++) {
        const unsigned __int128 product = (unsigned __int128)words[i] * 5 + carry;

        words[i] = (uint64_t)product;
        carry = (uint64_t)(product >> 64);
    }
    shift = carry >= 4 ? 3 : 2;
    for (int i = 0; i < WORDS; i++)
        words[i] = words[i] >> shift | (i + 1 < WORDS ? words[i + 1] : carry) << (64 - shift);
}

/* Divide by 10, without the power of two. */
static void divide_by_ten(uint64_t words[WORDS])
{
    const int shift = words[WORDS - 1] >> 60 >= 10 ? 2 : 3;
    uint64_t rest = words[WORDS - 1] >> (64 - shift);

    for (int i = WORDS; i-- > 0;) {
        const uint64_t below = i > 0 ? words[i - 1] >> (64 - shift) : 0;
        const unsigned __int128 number = (unsigned __int128)rest << 64 | words[i] << shift | below;

        words[i] = (uint64_t)(number / 5);
        rest = (uint64_t)(number % 5);
    }
}

static void set_power(int k, const uint64_t words[WORDS])
{
    const bool is_exact = k >= 0 && words[0] == 0;
    const uint64_t low = words[1] + !is_exact;

    powers[k - MIN_POWER] = (struct power_of_ten){words[2] + (low == 0 && !is_exact), low};
}

static void compute_powers(void)
{
    uint64_t up[WORDS] = {0, 0, UINT64_C(1) << 63}, down[WORDS] = {0, 0, UINT64_C(1) << 63};

    for (int k = 0; k <= MAX_POWER; k++, multiply_by_ten(up), divide_by_ten(down)) {
        if (k > 0 && -k >= MIN_POWER)
            set_power(-k, down);
        set_power(k, up);
    }
}

static struct power_of_ten power_of_ten(int k)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, compute_powers);
    return powers[k - MIN_POWER];
}

/* ---- the shortest decimal of a floating-point number ---- */

/* digits * 10^exponent */
struct decimal {
    uint64_t digits;
    int exponent;
};

/* mantissa * 2^exponent */
struct binary {
    uint64_t mantissa;
    int exponent;
    bool is_lower_closer; /* the next lower number is nearer than the next higher one */
};

/* floor(log10(2^e)), or with `of_3_4` floor(log10(3/4 * 2^e)); floor(log2(10^e)): exact here. */
static int floor_log10_power2(int e, bool of_3_4)
{
    return (e * 1262611 - (of_3_4 ? 524031 : 0)) >> 22;
}

static int floor_log2_power10(int e)
{
    return (e * 1741647) >> 19;
}

/* The top 64 bits of power * factor / 2^64, with the lowest bit set if anything is cut off. */
static uint64_t multiply_round_to_odd(struct power_of_ten power, uint64_t factor)
{
    const unsigned __int128 low = (unsigned __int128)power.low * factor;
    const unsigned __int128 sum = (unsigned __int128)power.high * factor + (uint64_t)(low >> 64);

    return (uint64_t)(sum >> 64) | ((uint64_t)sum > 1);
}

/*
 * Return the decimal with the fewest digits among those that round to `value`, which is not 0; of
 * several, the nearest. Schubfach: Raffaello Giulietti, "The Schubfach way to render doubles",
 * 2021.
 */
static struct decimal shortest(struct binary value)
{
    /* A bound of the interval is in it if the mantissa is even, as reading rounds to even. */
    const uint64_t is_odd = value.mantissa & 1;
    const int k = floor_log10_power2(value.exponent, value.is_lower_closer);
    const int shift = value.exponent + floor_log2_power10(-k) + 1;
    const struct power_of_ten power = power_of_ten(-k);
    const uint64_t middle = 4 * value.mantissa;
    /* Four times the value and its bounds, in units of 10^k. */
    const uint64_t scaled = multiply_round_to_odd(power, middle << shift);
    const uint64_t lower =
        multiply_round_to_odd(power, (middle - 2 + value.is_lower_closer) << shift) + is_odd;
    const uint64_t upper = multiply_round_to_odd(power, (middle + 2) << shift) - is_odd;
    const uint64_t s = scaled / 4;
    uint64_t digits = s;

    if (s >= 10) {
        const uint64_t tenth = s / 10;
        const bool is_below_in = lower <= 40 * tenth, is_above_in = 40 * tenth + 40 <= upper;

        if (is_below_in != is_above_in)
            return (struct decimal){tenth + is_above_in, k + 1};
    }
    if ((lower <= 4 * s) != (4 * s + 4 <= upper))
        digits += 4 * s + 4 <= upper;
    else
        digits += scaled > 4 * s + 2 || (scaled == 4 * s + 2 && s % 2 == 1);
    return (struct decimal){digits, k};
}

/* A format of floating-point numbers: bits of a mantissa, and the exponent of the least number. */
struct format {
    int bits, least_exponent;
};

static struct binary binary_of(double value, struct format format)
{
    int exponent;

    frexp(value, &exponent);
    exponent = MAX(exponent - format.bits, format.least_exponent);
    return (struct binary){(uint64_t)ldexp(value, -exponent), exponent,
                           value == ldexp(1, exponent + format.bits - 1) &&
                               exponent > format.least_exponent};
}

/* ---- text ---- */

static struct decimal without_zeros(struct decimal decimal)
{
    while (decimal.digits % 10 == 0) {
        decimal.digits /= 10;
        decimal.exponent++;
    }
    return decimal;
}

/* Write like Python's repr(): plain from 1e-4 up to 1e16, else with an exponent. */
static size_t write_decimal(struct decimal decimal, char *out)
{
    char digits[FS_NUMBER_BYTES];
    const size_t n = fs_write_unsigned(decimal.digits, digits);
    const int point = (int)n + decimal.exponent; /* digits before the point */

    if (point <= -4 || point > 16)
        return (size_t)sprintf(out, "%.1s%s%.*se%+03d", digits, n > 1 ? "." : "", (int)n - 1,
                               digits + 1, point - 1);
    if (point <= 0) {
        memcpy(out, "0.000", 5); /* NOLINT(bugprone-not-null-terminated-result) */
        memcpy(out + 2 - point, digits, n);
        return (size_t)(2 - point) + n;
    }
    if ((size_t)point >= n) {
        memcpy(out, digits, n);
        memset(out + n, '0', (size_t)point - n);
        memcpy(out + point, ".0", 2); /* NOLINT(bugprone-not-null-terminated-result) */
        return (size_t)point + 2;
    }
    memcpy(out, digits, (size_t)point);
    out[point] = '.';
    memcpy(out + point + 1, digits + point, n - (size_t)point);
    return n + 1;
}

static size_t write_number(double value, struct format format, char *out)
{
    const bool is_negative = signbit(value);
    const double magnitude = fabs(value);
    struct decimal decimal;

    if (!isfinite(value)) {
        memcpy(out, "null", 4); /* NOLINT(bugprone-not-null-terminated-result) */
        return 4;
    }
    if (magnitude < 1e6 && magnitude == trunc(magnitude)) /* the usual numbers in models */
        decimal = (struct decimal){.digits = (uint64_t)magnitude};
    else
        decimal = without_zeros(shortest(binary_of(magnitude, format)));
    *out = '-';
    return is_negative + write_decimal(decimal, out + is_negative);
}

size_t fs_write_double(double value, char *out)
{
    return write_number(value, (struct format){53, -1074}, out);
}

size_t fs_write_float(float value, char *out)
{
    /* The only float whose shortest digits read as another one if a double is in between. */
    if (fabsf(value) == 7.0385307e-26f)
        return (size_t)sprintf(out, "%.7e", (double)value);
    return write_number((double)value, (struct format){24, -149}, out);
}
