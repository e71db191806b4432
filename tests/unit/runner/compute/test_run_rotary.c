/* The rotary embedding of the runner, compared with its formulas in double. */
#include "contrib/runner/compute/rotary.h"
#include "contrib/runner/compute/thread_pool.h"
#include "tests/unit/runner/run_numbers.h"
#include "tests/unit/runner/thread_pool_checks.h"

#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct run_rotary_scaling plain = {
    .base = 10000, .factor = 1, .beta_fast = 32, .beta_slow = 1, .n_original = 4096};

static struct run_rotary make(enum run_rotary_kind kind, uint32_t n_rot,
                              const struct run_rotary_scaling *scaling)
{
    struct run_rotary rotary = {.kind = kind, .n_rot = n_rot, .magnitude = 1};

    cr_assert_eq(run_rotary_make(&rotary, scaling), 0);
    return rotary;
}

/*
 * Rotate one head at one position: pair i by the angle position · base^(-2i/n_rot) / divisors[i].
 */
static void rotate_reference(enum run_rotary_kind kind, size_t n_rot, double base,
                             const double *divisors, double magnitude, double position,
                             const float *x, size_t width, double *out)
{
    for (size_t i = 0; i < width; i++)
        out[i] = (double)x[i];
    for (size_t i = 0; i < n_rot / 2; i++) {
        const size_t a = kind == RUN_ROTARY_NEOX ? i : 2 * i;
        const size_t b = kind == RUN_ROTARY_NEOX ? i + n_rot / 2 : 2 * i + 1;
        const double angle =
            position / pow(base, 2.0 * (double)i / (double)n_rot) / (divisors ? divisors[i] : 1);

        out[a] = magnitude * ((double)x[a] * cos(angle) - (double)x[b] * sin(angle));
        out[b] = magnitude * ((double)x[a] * sin(angle) + (double)x[b] * cos(angle));
    }
}

static void check_rotate(enum run_rotary_kind kind, uint32_t n_rot, size_t n, size_t n_heads,
                         size_t width, uint64_t first)
{
    const size_t stride = n_heads * width + 3;
    struct run_rotary rotary = make(kind, n_rot, &plain);
    uint64_t state = first + n_rot;
    float *x = numbers_make(&state, 1, n * stride), *rotated = numbers_alloc(n * stride, sizeof *x);
    double *expected = numbers_alloc(width, sizeof *expected);

    rotary.magnitude = 1.25f;
    memcpy(rotated, x, n * stride * sizeof *x);
    run_rotate(&rotary, rotated, n, n_heads, width, stride, first);
    for (size_t i = 0; i < n; i++) {
        for (size_t head = 0; head < n_heads; head++) {
            const size_t at = i * stride + head * width;

            rotate_reference(kind, n_rot, 10000, NULL, 1.25, (double)(first + i), x + at, width,
                             expected);
            numbers_expect_near("head", rotated + at, expected, width, 3e-7);
        }
        numbers_expect_same("between tokens", rotated + i * stride + n_heads * width,
                            x + i * stride + n_heads * width, 3);
    }
    free(x);
    free(rotated);
    free(expected);
    run_rotary_free(&rotary);
}

TestSuite(run_rotary, .init = thread_pool_begin_test, .fini = run_thread_pool_end);

Test(run_rotary, normal_and_neox_whole_and_partial)
{
    static const enum run_rotary_kind kinds[] = {RUN_ROTARY_NORMAL, RUN_ROTARY_NEOX};

    for (size_t k = 0; k < COUNT(kinds); k++) {
        check_rotate(kinds[k], 8, 1, 1, 8, 0);
        check_rotate(kinds[k], 64, 5, 4, 64, 3);
        check_rotate(kinds[k], 16, 3, 2, 40, 100);
        check_rotate(kinds[k], 2, 2, 3, 7, 1);
        check_rotate(kinds[k], 0, 2, 3, 7, 1);
        /* Angles are exact at large positions. */
        check_rotate(kinds[k], 128, 2, 1, 128, 1000000);
    }
}

Test(run_rotary, kind_none_changes_nothing)
{
    float x[] = {1, 2, 3, 4};
    struct run_rotary rotary = make(RUN_ROTARY_NONE, 4, &plain);

    run_rotate(&rotary, x, 1, 1, 4, 4, 77);
    cr_expect(x[0] == 1 && x[1] == 2 && x[2] == 3 && x[3] == 4);
    run_rotary_free(&rotary);
}

Test(run_rotary, batches_do_not_change_the_result)
{
    struct run_rotary rotary = make(RUN_ROTARY_NEOX, 32, &plain);
    uint64_t state = 5;
    float *x = numbers_make(&state, 1, 9 * 96), *alone = numbers_alloc(9 * 96, sizeof *x);

    memcpy(alone, x, 9 * 96 * sizeof *x);
    run_rotate(&rotary, x, 9, 3, 32, 96, 40);
    for (size_t i = 0; i < 9; i++)
        run_rotate(&rotary, alone + i * 96, 1, 3, 32, 96, 40 + i);
    numbers_expect_same("token", alone, x, 9 * 96);
    free(x);
    free(alone);
    run_rotary_free(&rotary);
}

Test(run_rotary, factors_divide_frequencies)
{
    static const float factors[] = {1, 2, 4.5f, 100};
    struct run_rotary_scaling scaling = plain;
    struct run_rotary rotary;

    scaling.base = 500000;
    scaling.factor = 8;
    rotary = make(RUN_ROTARY_NORMAL, 8, &scaling);
    for (size_t i = 0; i < 4; i++)
        cr_expect_float_eq(rotary.frequencies[i], pow(500000, -(double)i / 4) / 8, 1e-12);
    run_rotary_free(&rotary);
    scaling.factors = factors;
    rotary = make(RUN_ROTARY_NORMAL, 8, &scaling);
    for (size_t i = 0; i < 4; i++)
        cr_expect_float_eq(rotary.frequencies[i],
                           pow(500000, -(double)i / 4) / 8 / (double)factors[i], 1e-12);
    run_rotary_free(&rotary);
}

/* Return the pair where the YaRN ramp begins or ends, as in the paper's code. */
static double correction(double n_rot, double base, double n_original, double rotations)
{
    return n_rot * log(n_original / (rotations * 2 * M_PI)) / (2 * log(base));
}

Test(run_rotary, yarn_interpolates_slow_pairs_only)
{
    enum { N_ROT = 128 };
    struct run_rotary_scaling scaling = {.base = 10000,
                                         .factor = 16,
                                         .yarn_mix = 1,
                                         .beta_fast = 32,
                                         .beta_slow = 1,
                                         .n_original = 4096};
    struct run_rotary rotary = make(RUN_ROTARY_NEOX, N_ROT, &scaling);
    const double low = floor(correction(N_ROT, 10000, 4096, 32));
    const double high = ceil(correction(N_ROT, 10000, 4096, 1));
    size_t n_between = 0;

    cr_assert(low > 0 && low < high && high < N_ROT / 2);
    for (size_t i = 0; i < N_ROT / 2; i++) {
        const double frequency = pow(10000, -2.0 * (double)i / N_ROT);
        const double ramp = fmin(1, fmax(0, ((double)i - low) / (high - low)));
        const double expected = frequency / 16 * ramp + frequency * (1 - ramp);

        cr_expect_float_eq(rotary.frequencies[i], expected, 1e-12 * frequency, "pair %zu", i);
        n_between += ramp > 0 && ramp < 1;
    }
    cr_expect_gt(n_between, 10u);
    run_rotary_free(&rotary);
    /* A mix of 0.5 is the mean of both frequencies. */
    scaling.yarn_mix = 0.5f;
    rotary = make(RUN_ROTARY_NEOX, N_ROT, &scaling);
    cr_expect_float_eq(rotary.frequencies[0], (1 + 1 / 16.0) / 2, 1e-12);
    run_rotary_free(&rotary);
}

Test(run_rotary, yarn_of_a_short_context_stays_finite)
{
    struct run_rotary_scaling scaling = {.base = 10000,
                                         .factor = 4,
                                         .yarn_mix = 1,
                                         .beta_fast = 32,
                                         .beta_slow = 1,
                                         .n_original = 0};

    for (uint32_t n_original = 0; n_original < 40; n_original++) {
        struct run_rotary rotary;

        scaling.n_original = n_original;
        rotary = make(RUN_ROTARY_NORMAL, 16, &scaling);
        for (size_t i = 0; i < 8; i++)
            cr_expect(rotary.frequencies[i] > 0 && rotary.frequencies[i] <= 1,
                      "context %u: pair %zu has frequency %g", n_original, i,
                      rotary.frequencies[i]);
        run_rotary_free(&rotary);
    }
}
