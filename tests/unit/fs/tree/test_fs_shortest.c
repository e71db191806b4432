/*
 * Floating-point numbers as text. The reference uses only the C library: printf, which rounds by
 * the rounding mode, and strtod, which rounds to nearest.
 */
#include <criterion/criterion.h>
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/tree/output/shortest.h"
#include "tests/unit/gguf/model_file.h"

static void double_text(double value, char text[FS_NUMBER_BYTES])
{
    text[fs_write_double(value, text)] = '\0';
}

static void float_text(float value, char text[FS_NUMBER_BYTES])
{
    text[fs_write_float(value, text)] = '\0';
}

Test(fs_shortest, format_of_python)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0, "0.0"},
        {-0.0, "-0.0"},
        {1, "1.0"},
        {-1, "-1.0"},
        {0.1, "0.1"},
        {-0.25, "-0.25"},
        {1.0 / 3, "0.3333333333333333"},
        {2.0 / 3, "0.6666666666666666"},
        {0.1 + 0.2, "0.30000000000000004"},
        {123456.789, "123456.789"},
        {999999, "999999.0"},
        {1000000, "1000000.0"},
        {1e15, "1000000000000000.0"},
        {123456789012345680.0, "1.2345678901234568e+17"},
        {9999999999999998.0, "9999999999999998.0"},
        {1e16, "1e+16"},
        {1.5e16, "1.5e+16"},
        {1e22, "1e+22"},
        {1e23, "1e+23"},
        {9007199254740993.0, "9007199254740992.0"},
        {18446744073709551616.0, "1.8446744073709552e+19"},
        {0.001, "0.001"},
        {0.0001, "0.0001"},
        {0.00012, "0.00012"},
        {0.00001, "1e-05"},
        {0.000012, "1.2e-05"},
        {1e-10, "1e-10"},
        {1.5e300, "1.5e+300"},
        {1e100, "1e+100"},
        {1e-100, "1e-100"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {DBL_MIN, "2.2250738585072014e-308"},
        {2.225073858507201e-308, "2.225073858507201e-308"},
        {4.9406564584124654e-324, "5e-324"},
        {9.8813129168249309e-324, "1e-323"},
        /* 2^-44: 5.684341886080801e-14 is nearer but does not read back. */
        {5.684341886080802e-14, "5.684341886080802e-14"},
        {6.103515625e-05, "6.103515625e-05"},
        {3.141592653589793, "3.141592653589793"},
        {5e-324, "5e-324"},
        {(double)NAN, "null"},
        {(double)INFINITY, "null"},
        {(double)-INFINITY, "null"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[FS_NUMBER_BYTES];

        double_text(cases[i].value, text);
        cr_expect_str_eq(text, cases[i].text);
    }
}

Test(fs_shortest, digits_of_a_float)
{
    static const struct {
        float value;
        const char *text;
    } cases[] = {
        {0, "0.0"},
        {-0.0f, "-0.0"},
        {0.1f, "0.1"},
        {1e-5f, "1e-05"},
        {1e-6f, "1e-06"},
        {1.0f / 3, "0.33333334"},
        {10000, "10000.0"},
        {500000, "500000.0"},
        {16777216, "16777216.0"},
        {1e10f, "10000000000.0"},
        {1e16f, "1e+16"},
        {8589973504.0f, "8589974000.0"}, /* fewer digits than as a double */
        {3.4028234663852886e38f, "3.4028235e+38"},
        {FLT_MIN, "1.1754944e-38"},
        {1.1754942e-38f, "1.1754942e-38"},
        {1.40129846e-45f, "1e-45"},
        {2.80259693e-45f, "3e-45"},
        {9.8607613e-32f, "9.8607613e-32"}, /* 2^-103 */
        {NAN, "null"},
        {INFINITY, "null"},
        {-INFINITY, "null"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[FS_NUMBER_BYTES];

        float_text(cases[i].value, text);
        cr_expect_str_eq(text, cases[i].text);
    }
}

/* Count the significant digits. */
static int count_digits(const char *text)
{
    int n = 0, n_zeros = 0;

    for (; *text != '\0' && *text != 'e'; text++) {
        if (*text == '0')
            n_zeros += n > 0;
        else if (*text >= '1' && *text <= '9') {
            n += n_zeros + 1;
            n_zeros = 0;
        }
    }
    return n;
}

static bool reads_back(const char *text, double value, bool is_float)
{
    if (!is_float)
        return strtod(text, NULL) == value;
    /* Readers may parse a float directly or as a double. */
    return strtof(text, NULL) == (float)value && (float)strtod(text, NULL) == (float)value;
}

/* Format the value with n_digits, rounded in the direction of the rounding mode. */
static void neighbour(double value, int n_digits, int rounding, char text[64])
{
    cr_assert_eq(fesetround(rounding), 0);
    snprintf(text, 64, "%.*e", n_digits - 1, value);
    cr_assert_eq(fesetround(FE_TONEAREST), 0);
}

/* Return true if the text of a positive finite value is a JSON number with a '.' or an 'e'. */
static bool is_json_number(const char *text)
{
    const char *c = text + strspn(text, "0123456789");

    if (c == text || (text[0] == '0' && c != text + 1))
        return false;
    if (*c == '.') {
        const size_t n = strspn(c + 1, "0123456789");

        if (n == 0)
            return false;
        c += 1 + n;
    } else if (*c != 'e') {
        return false;
    }
    if (*c == 'e') {
        const size_t n = strspn(c + 2, "0123456789");

        if ((c[1] != '+' && c[1] != '-') || n < 2)
            return false;
        c += 2 + n;
    }
    return *c == '\0';
}

/*
 * Check the text of a positive finite value. It must read back, no shorter text may, and of the
 * texts of this length that read back it must be the nearest.
 */
static void check(double value, bool is_float)
{
    char text[FS_NUMBER_BYTES], down[64], up[64], nearest[64];
    int n_digits;

    if (is_float)
        float_text((float)value, text);
    else
        double_text(value, text);
    n_digits = count_digits(text);
    cr_assert(is_json_number(text), "%a: %s", value, text);
    cr_assert(reads_back(text, value, is_float), "%a: %s", value, text);
    cr_assert_leq(n_digits, is_float ? 9 : 17, "%a: %s", value, text);
    if (n_digits > 1) {
        neighbour(value, n_digits - 1, FE_DOWNWARD, down);
        neighbour(value, n_digits - 1, FE_UPWARD, up);
        cr_assert_not(reads_back(down, value, is_float), "%a: %s is longer than %s", value, text,
                      down);
        cr_assert_not(reads_back(up, value, is_float), "%a: %s is longer than %s", value, text, up);
    }
    neighbour(value, n_digits, FE_TONEAREST, nearest);
    if (reads_back(nearest, value, is_float)) {
        cr_assert_eq(strtod(text, NULL), strtod(nearest, NULL), "%a: %s is not as near as %s",
                     value, text, nearest);
    } else {
        neighbour(value, n_digits, FE_DOWNWARD, down);
        neighbour(value, n_digits, FE_UPWARD, up);
        cr_assert(strtod(text, NULL) == strtod(down, NULL) ||
                      strtod(text, NULL) == strtod(up, NULL),
                  "%a: %s", value, text);
    }
}

static float float_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static double double_of(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

Test(fs_shortest, floats_around_every_power_of_two)
{
    for (int power = -149; power < 128; power++) {
        const float value = ldexpf(1, power);

        check((double)value, true);
        check((double)nextafterf(value, INFINITY), true);
        if (power > -149)
            check((double)nextafterf(value, 0), true);
    }
    check((double)FLT_MAX, true);
}

Test(fs_shortest, doubles_around_every_power_of_two)
{
    for (int power = -1074; power < 1024; power++) {
        const double value = ldexp(1, power);

        check(value, false);
        check(nextafter(value, (double)INFINITY), false);
        if (power > -1074)
            check(nextafter(value, 0), false);
    }
    check(DBL_MAX, false);
}

Test(fs_shortest, floats_and_doubles_around_every_power_of_ten)
{
    for (int power = -323; power <= 308; power++) {
        char text[16];
        double value;

        snprintf(text, sizeof text, "1e%d", power);
        value = strtod(text, NULL);
        check(value, false);
        check(nextafter(value, (double)INFINITY), false);
        check(nextafter(value, 0), false);
        if (power >= -44 && power <= 38) {
            check((double)strtof(text, NULL), true);
            check((double)nextafterf(strtof(text, NULL), INFINITY), true);
            check((double)nextafterf(strtof(text, NULL), 0), true);
        }
    }
}

Test(fs_shortest, small_denormals)
{
    for (uint32_t bits = 1; bits < 3000; bits++) {
        check((double)float_of(bits), true);
        check(double_of(bits), false);
    }
}

/*
 * Read as a double and then rounded to float, the shortest decimals of these two floats would be
 * rounded twice and give another float.
 */
Test(fs_shortest, floats_that_a_double_would_round_twice)
{
    static const uint32_t bits[] = {0x15ae43fd, 0x15ae43fe};

    for (size_t i = 0; i < COUNT(bits); i++) {
        char text[FS_NUMBER_BYTES];

        float_text(float_of(bits[i]), text);
        cr_expect_eq((float)strtod(text, NULL), float_of(bits[i]), "%s", text);
        check((double)float_of(bits[i]), true);
    }
}

Test(fs_shortest, random_floats)
{
    uint64_t state = 1;

    for (int i = 0; i < 200000; i++) {
        const float value = float_of((uint32_t)model_file_random(&state) & 0x7fffffff);

        if (isfinite(value) && value > 0)
            check((double)value, true);
    }
}

Test(fs_shortest, random_doubles)
{
    uint64_t state = 2;

    for (int i = 0; i < 100000; i++) {
        const double value = double_of(model_file_random(&state) >> 1);

        if (isfinite(value) && value > 0)
            check(value, false);
    }
}

Test(fs_shortest, short_decimals_round_trip)
{
    uint64_t state = 3;

    for (int i = 0; i < 50000; i++) {
        const int n_digits = 1 + (int)(model_file_random(&state) % 6);
        const long digits = (long)(model_file_random(&state) % (uint64_t)pow(10, n_digits));
        char decimal[32], text[FS_NUMBER_BYTES];

        if (digits == 0)
            continue;
        snprintf(decimal, sizeof decimal, "%lde%d", digits,
                 (int)(model_file_random(&state) % 40) - 24);
        float_text(strtof(decimal, NULL), text);
        cr_assert_eq(strtod(text, NULL), strtod(decimal, NULL), "%s: %s", decimal, text);
        double_text(strtod(decimal, NULL), text);
        cr_assert_eq(strtod(text, NULL), strtod(decimal, NULL), "%s: %s", decimal, text);
        cr_assert_leq(count_digits(text), n_digits, "%s: %s", decimal, text);
    }
}

Test(fs_shortest, negative_numbers_have_the_same_digits)
{
    uint64_t state = 4;

    for (int i = 0; i < 1000; i++) {
        const uint64_t bits = model_file_random(&state) >> 1;
        char positive[FS_NUMBER_BYTES], negative[FS_NUMBER_BYTES];

        if (!isfinite(double_of(bits)))
            continue;
        double_text(double_of(bits), positive);
        double_text(double_of(bits | 1ull << 63), negative);
        cr_assert_eq(negative[0], '-');
        cr_assert_str_eq(negative + 1, positive);
    }
}
