#include "fs/tree/shortest.h"

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

/* All exact in a double. */
static const double powers[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6, 1e7,
                                1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14};

/* Whether a double lies just between two floats, so that how it came about decides on the rounding.
 */
static bool is_between_floats(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return (bits & 0x1fffffff) == 0x10000000;
}

/*
 * shortest() for a float from 1e-5 to 1e6, where one product and one quotient of exact doubles
 * answer what decimals have to be written and read back for otherwise (Clinger 1990). Returns false
 * where rounding might spoil that, which is rare.
 */
static bool shortest_float(double value, struct decimal *decimal)
{
    int magnitude = -5; /* 10^magnitude <= value < 10^(magnitude + 1) */
    int power;

    if (value < 1e-5 || value >= 1e6 || frexp(value, &power) == 0.5)
        return false;
    while (magnitude < 5 &&
           (magnitude < -1 ? value * powers[-magnitude - 1] >= 1 : value >= powers[magnitude + 1]))
        magnitude++;
    for (int n_digits = FLT_DIG; n_digits <= FLT_DECIMAL_DIG; n_digits++) {
        const int scale = n_digits - 1 - magnitude;
        const double scaled = value * powers[scale];
        const double digits = nearbyint(scaled);
        const double back = digits / powers[scale];

        if (fabs(fabs(scaled - digits) - 0.5) < 1e-6 || is_between_floats(back))
            return false;
        if ((float)back == (float)value) {
            *decimal = (struct decimal){(uint64_t)digits, -scale};
            return true;
        }
    }
    return false;
}

/* `value` is positive and finite. */
static struct decimal shortest(double value, bool is_float)
{
    const bool is_normal = value >= (is_float ? (double)FLT_MIN : DBL_MIN);
    const int last = is_float ? FLT_DECIMAL_DIG : DBL_DECIMAL_DIG;
    int n_digits = 1;
    int power;
    struct decimal decimal;

    if (is_float && shortest_float(value, &decimal))
        return decimal;
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
    return decimal;
}

static struct decimal without_zeros(struct decimal decimal)
{
    while (decimal.digits % 10 == 0) {
        decimal.digits /= 10;
        decimal.exponent++;
    }
    return decimal;
}

/* Writes the digits of a number without a NUL; returns how many. */
static int write_digits(uint64_t number, char *out)
{
    char reversed[24];
    int n = 0;

    do {
        reversed[n++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    for (int i = 0; i < n; i++)
        out[i] = reversed[n - 1 - i];
    return n;
}

/* Python's repr(): plain from 1e-4 up to 1e16, else with an exponent of at least two digits. */
static void print(struct decimal decimal, char *number)
{
    char digits[24];
    const int n_digits = write_digits(decimal.digits, digits);
    const int point = n_digits + decimal.exponent; /* digits before the point */
    const int n_before = point < n_digits ? point : n_digits;

    if (point <= -4 || point > 16) {
        sprintf(number, "%c%s%.*se%+03d", digits[0], n_digits > 1 ? "." : "", n_digits - 1,
                digits + 1, point - 1);
        return;
    }
    if (point <= 0) {
        memcpy(number, "0.000", 5);
        number += 2 - point;
        memcpy(number, digits, (size_t)n_digits);
        number[n_digits] = '\0';
        return;
    }
    memcpy(number, digits, (size_t)n_before);
    number += n_before;
    for (int i = n_before; i < point; i++)
        *number++ = '0';
    *number++ = '.';
    if (n_before == n_digits)
        *number++ = '0';
    memcpy(number, digits + n_before, (size_t)(n_digits - n_before));
    number[n_digits - n_before] = '\0';
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
    /* Most of what models hold. */
    if (value < 1e6 && value == floor(value))
        print((struct decimal){(uint64_t)value, 0}, number);
    else
        print(without_zeros(shortest(value, is_float)), number);
}

void fs_shortest_float(float value, char *number)
{
    write_number((double)value, true, number);
}

void fs_shortest_double(double value, char *number)
{
    write_number(value, false, number);
}
