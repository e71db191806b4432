#include "tests/unit/runner/run_numbers.h"

#include "dequant/slots.h"
#include "tests/unit/dequant/random_blocks.h"

#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

void *numbers_alloc(size_t n, size_t element_bytes)
{
    void *block = calloc(n ? n : 1, element_bytes);

    cr_assert_not_null(block);
    return block;
}

void numbers_fill(uint64_t *state, float scale, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = scale * ((float)(next_random(state) >> 40) / (float)(1 << 23) - 1);
}

float *numbers_make(uint64_t *state, float scale, size_t n)
{
    float *x = numbers_alloc(n, sizeof *x);

    numbers_fill(state, scale, x, n);
    return x;
}

void numbers_expect_near(const char *what, const float *got, const double *expected, size_t n,
                         double tolerance)
{
    double largest = 0;

    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(expected[i]));
    for (size_t i = 0; i < n; i++)
        cr_assert(fabs((double)got[i] - expected[i]) <= tolerance * largest,
                  "%s: number %zu is %.9g, expected %.9g, tolerance %g", what, i, (double)got[i],
                  expected[i], tolerance * largest);
}

void numbers_expect_same(const char *what, const float *got, const float *expected, size_t n)
{
    for (size_t i = 0; i < n; i++)
        cr_assert_eq(memcmp(&got[i], &expected[i], sizeof *got), 0,
                     "%s: number %zu is %.9g, expected %.9g", what, i, (double)got[i],
                     (double)expected[i]);
}

float numbers_as_f16(float x)
{
    uint8_t half[2];
    float back;

    dequant_scalar_to_f16(&x, half, 1);
    dequant_scalar_f16(half, &back, 1, (struct dequant_row){0});
    return back;
}

void numbers_multiply(const float *rows, size_t n_rows, size_t width, const double *x, double *out)
{
    for (size_t r = 0; r < n_rows; r++) {
        out[r] = 0;
        for (size_t i = 0; i < width; i++)
            out[r] += (double)rows[r * width + i] * x[i];
    }
}
