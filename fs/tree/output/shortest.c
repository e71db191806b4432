#include "fs/tree/output/shortest.h"

#include "fs/tree/output/powers_of_ten.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- integers ---- */

unsigned fs_count_digits(uint64_t number)
{
    unsigned n = 1;

    for (uint64_t limit = 10; n < 20 && number >= limit; limit *= 10)
        n++;
    return n;
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
static uint64_t multiply_round_to_odd(struct fs_power_of_ten power, uint64_t factor)
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
    const struct fs_power_of_ten power = fs_power_of_ten(-k);
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

static struct binary binary_of_double(double value)
{
    uint64_t bits, fraction;
    int exponent;

    memcpy(&bits, &value, sizeof bits);
    fraction = bits & ((UINT64_C(1) << 52) - 1);
    exponent = (int)(bits >> 52 & 0x7ff);
    if (exponent == 0)
        return (struct binary){fraction, -1074, false};
    return (struct binary){fraction | UINT64_C(1) << 52, exponent - 1075,
                           fraction == 0 && exponent > 1};
}

static struct binary binary_of_float(float value)
{
    uint32_t bits, fraction;
    int exponent;

    memcpy(&bits, &value, sizeof bits);
    fraction = bits & 0x7fffff;
    exponent = (int)(bits >> 23 & 0xff);
    if (exponent == 0)
        return (struct binary){fraction, -149, false};
    return (struct binary){fraction | 0x800000, exponent - 150, fraction == 0 && exponent > 1};
}

/* All exact in a double. */
static const double exact_powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                      1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                      1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

#define MAX_EXACT_POWER 22

/* Return the double that a decimal with digits up to 2^53 reads as. */
static double read_decimal(struct decimal decimal)
{
    char text[FS_NUMBER_BYTES];

    /* One operation on exact numbers rounds once (Clinger 1990). */
    if (decimal.exponent >= 0 && decimal.exponent <= MAX_EXACT_POWER)
        return (double)decimal.digits * exact_powers[decimal.exponent];
    if (decimal.exponent < 0 && decimal.exponent >= -MAX_EXACT_POWER)
        return (double)decimal.digits / exact_powers[-decimal.exponent];
    snprintf(text, sizeof text, "%" PRIu64 "e%d", decimal.digits, decimal.exponent);
    return strtod(text, NULL);
}

/*
 * Return the shortest decimal of a float for readers that go through a double and so round twice,
 * where the float's own shortest decimal fails. This is rare, so it may be slow.
 */
static struct decimal shortest_through_double(float value)
{
    struct decimal decimal = {0};

    for (int n_digits = 1; n_digits <= FLT_DECIMAL_DIG; n_digits++) {
        char text[FS_NUMBER_BYTES];
        char *c;

        snprintf(text, sizeof text, "%.*e", n_digits - 1, (double)value);
        decimal.digits = 0;
        for (c = text; *c != 'e'; c++) {
            if (*c != '.')
                decimal.digits = decimal.digits * 10 + (uint64_t)(*c - '0');
        }
        decimal.exponent = (int)strtol(c + 1, NULL, 10) - (n_digits - 1);
        if (strtof(text, NULL) == value && (float)read_decimal(decimal) == value)
            break;
    }
    return decimal;
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

/* One digit, the point and the others, and an exponent of at least two digits. */
static size_t write_exponent(const char *digits, size_t n_digits, int exponent, char *out)
{
    char *at = out;
    const unsigned magnitude = (unsigned)abs(exponent);

    *at++ = digits[0];
    if (n_digits > 1) {
        *at++ = '.';
        memcpy(at, digits + 1, n_digits - 1);
        at += n_digits - 1;
    }
    *at++ = 'e';
    *at++ = exponent < 0 ? '-' : '+';
    if (magnitude >= 100)
        *at++ = (char)('0' + magnitude / 100);
    *at++ = (char)('0' + magnitude / 10 % 10);
    *at++ = (char)('0' + magnitude % 10);
    return (size_t)(at - out);
}

/* Copying a fixed number of digits is faster; the surplus is overwritten later. */
#define COPIED_BYTES 20

_Static_assert(1 + 16 + 1 + COPIED_BYTES <= FS_NUMBER_BYTES, "a sign, digits, the point, a copy");

/* Write like Python's repr(): plain from 1e-4 up to 1e16, else with an exponent. */
static size_t write_decimal(struct decimal decimal, char *out)
{
    char digits[2 * COPIED_BYTES];
    const size_t n_digits = fs_write_unsigned(decimal.digits, digits);
    const int point = (int)n_digits + decimal.exponent; /* digits before the point */
    char *at = out;

    if (point <= -4 || point > 16)
        return write_exponent(digits, n_digits, point - 1, out);
    if (point <= 0) {
        memcpy(at, "0.000", 5); /* NOLINT(bugprone-not-null-terminated-result) */
        at += 2 - point;
        memcpy(at, digits, COPIED_BYTES);
        return (size_t)(at - out) + n_digits;
    }
    if ((size_t)point >= n_digits) {
        memcpy(at, digits, COPIED_BYTES);
        at += n_digits;
        for (size_t i = n_digits; i < (size_t)point; i++)
            *at++ = '0';
        memcpy(at, ".0", 2); /* NOLINT(bugprone-not-null-terminated-result) */
        return (size_t)(at + 2 - out);
    }
    memcpy(at, digits, COPIED_BYTES);
    at[point] = '.';
    memcpy(at + point + 1, digits + point, COPIED_BYTES);
    return n_digits + 1;
}

/*
 * Write a number that needs no search for digits. Returns the length, or 0 if `value` needs a
 * search.
 */
static size_t write_simple(double value, char *out)
{
    if (!isfinite(value)) {
        memcpy(out, (const char[]){'n', 'u', 'l', 'l'}, 4);
        return 4;
    }
    /* The usual numbers in models. */
    if (fabs(value) < 1e6 && value == trunc(value)) {
        const bool is_negative = signbit(value);

        *out = '-';
        return is_negative +
               write_decimal((struct decimal){.digits = (uint64_t)fabs(value)}, out + is_negative);
    }
    return 0;
}

size_t fs_write_float(float value, char *out)
{
    const size_t length = write_simple((double)value, out);
    const bool is_negative = value < 0;
    const float magnitude = fabsf(value);
    struct decimal decimal;

    if (length > 0)
        return length;
    decimal = shortest(binary_of_float(magnitude));
    if ((float)read_decimal(decimal) != magnitude)
        decimal = shortest_through_double(magnitude);
    *out = '-';
    return is_negative + write_decimal(without_zeros(decimal), out + is_negative);
}

size_t fs_write_double(double value, char *out)
{
    const size_t length = write_simple(value, out);
    const bool is_negative = value < 0;

    if (length > 0)
        return length;
    *out = '-';
    return is_negative +
           write_decimal(without_zeros(shortest(binary_of_double(fabs(value)))), out + is_negative);
}
