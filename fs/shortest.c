#include "fs/shortest.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* |value| = digits * 10^exponent */
struct decimal {
    uint64_t digits;
    int exponent;
};

static bool reads_back(struct decimal decimal, double value, bool is_float)
{
    char text[FS_SHORTEST_BYTES];

    snprintf(text, sizeof text, "%" PRIu64 "e%d", decimal.digits, decimal.exponent);
    if (!is_float)
        return strtod(text, NULL) == value;
    /* For readers that go through double, too, which round twice. */
    return strtof(text, NULL) == (float)value && (float)strtod(text, NULL) == (float)value;
}

/* The decimal of `n_digits` digits that is nearest to a positive value. */
static struct decimal nearest(double value, int n_digits)
{
    char text[FS_SHORTEST_BYTES];
    struct decimal decimal = {0};
    char *c;

    snprintf(text, sizeof text, "%.*e", n_digits - 1, value);
    for (c = text; *c != 'e'; c++) {
        if (*c != '.')
            decimal.digits = decimal.digits * 10 + (uint64_t)(*c - '0');
    }
    decimal.exponent = (int)strtol(c + 1, NULL, 10) - (n_digits - 1);
    return decimal;
}

/* `value` is positive and finite. */
static struct decimal shortest(double value, bool is_float)
{
    const bool is_normal = value >= (is_float ? (double)FLT_MIN : DBL_MIN);
    const int last = is_float ? FLT_DECIMAL_DIG : DBL_DECIMAL_DIG;
    int n_digits = 1;
    int power;
    struct decimal decimal;

    /* Fewer digits always read back if the nearest of DIG digits ends in zeros; these go below. */
    if (is_normal)
        n_digits = is_float ? FLT_DIG : DBL_DIG;
    for (;; n_digits++) {
        decimal = nearest(value, n_digits);
        if (n_digits >= last || reads_back(decimal, value, is_float))
            break;
        /* Above a power of two the neighbours lie twice as far away as below it. */
        if (frexp(value, &power) == 0.5) {
            decimal.digits++;
            if (reads_back(decimal, value, is_float))
                break;
        }
    }
    while (decimal.digits % 10 == 0) {
        decimal.digits /= 10;
        decimal.exponent++;
    }
    return decimal;
}

/* Python's repr(): plain from 1e-4 up to 1e16, else with an exponent of at least two digits. */
static void print(struct decimal decimal, char *number)
{
    char digits[24];
    const int n_digits = snprintf(digits, sizeof digits, "%" PRIu64, decimal.digits);
    const int point = n_digits + decimal.exponent; /* digits before the point */

    if (point <= -4 || point > 16)
        sprintf(number, "%.1s%s%se%+03d", digits, n_digits > 1 ? "." : "", digits + 1, point - 1);
    else if (point <= 0)
        sprintf(number, "0.%.*s%s", -point, "0000", digits);
    else if (point >= n_digits)
        sprintf(number, "%s%.*s.0", digits, point - n_digits, "0000000000000000");
    else
        sprintf(number, "%.*s.%s", point, digits, digits + point);
}

static void write_number(double value, bool is_float, char *number)
{
    if (!isfinite(value)) {
        memcpy(number, "null", sizeof "null");
        return;
    }
    if (signbit(value))
        *number++ = '-';
    value = fabs(value);
    /* Most of what models hold; the detour over decimals is some twenty times slower. */
    if (value < 1e6 && value == floor(value))
        sprintf(number, "%d.0", (int)value);
    else
        print(shortest(value, is_float), number);
}

void fs_shortest_float(float value, char *number)
{
    write_number((double)value, true, number);
}

void fs_shortest_double(double value, char *number)
{
    write_number(value, false, number);
}
