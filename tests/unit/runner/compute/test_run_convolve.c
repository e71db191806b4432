/* The causal convolution, compared with its formula, and its state between batches. */
#include <criterion/criterion.h>
#include <string.h>

#include "contrib/runner/compute/recurrences.h"
#include "contrib/runner/compute/thread_pool.h"
#include "tests/unit/dequant/random_floats.h"
#include "tests/unit/runner/thread_pool_checks.h"

enum { CHANNELS = 37, STRIDE = 50, TAPS = 4, TOKENS = 23 };

struct sample {
    float taps[TAPS * CHANNELS], bias[CHANNELS], past[(TAPS - 1) * CHANNELS];
    float x[TOKENS * STRIDE];
    struct run_convolution convolution;
};

static void make(struct sample *sample, size_t n_taps, bool has_bias)
{
    uint32_t seed = 7;

    random_floats(&seed, -1, 1, sample->taps, TAPS * CHANNELS);
    random_floats(&seed, -1, 1, sample->bias, CHANNELS);
    random_floats(&seed, -1, 1, sample->x, TOKENS * STRIDE);
    memset(sample->past, 0, sizeof sample->past);
    sample->convolution = (struct run_convolution){
        .n_channels = CHANNELS,
        .n_taps = n_taps,
        .taps = sample->taps,
        .bias = has_bias ? sample->bias : NULL,
        .past = sample->past,
    };
}

static void expect(const struct sample *sample, double *out)
{
    const struct run_convolution *convolution = &sample->convolution;

    for (size_t t = 0; t < TOKENS; t++)
        for (size_t c = 0; c < CHANNELS; c++) {
            double sum = convolution->bias ? (double)convolution->bias[c] : 0;

            for (size_t back = 0; back < convolution->n_taps && back <= t; back++)
                sum += (double)convolution->taps[(convolution->n_taps - 1 - back) * CHANNELS + c] *
                       (double)sample->x[(t - back) * STRIDE + c];
            out[t * CHANNELS + c] = sum;
        }
}

/* Feed all tokens in batches of this size. */
static void feed(struct sample *sample, size_t batch, float *out)
{
    for (size_t at = 0; at < TOKENS; at += batch) {
        const size_t n = TOKENS - at < batch ? TOKENS - at : batch;

        run_convolve(&sample->convolution, sample->x + at * STRIDE, STRIDE, n, out + at * CHANNELS);
    }
}

TestSuite(run_convolve, .init = thread_pool_begin_test, .fini = run_thread_pool_end);

Test(run_convolve, matches_the_formula)
{
    static struct sample sample;
    static float out[TOKENS * CHANNELS];
    static double expected[TOKENS * CHANNELS];

    for (size_t n_taps = 1; n_taps <= TAPS; n_taps++)
        for (int has_bias = 0; has_bias < 2; has_bias++) {
            make(&sample, n_taps, has_bias);
            expect(&sample, expected);
            feed(&sample, TOKENS, out);
            cr_assert_lt(error_of(out, expected, TOKENS * CHANNELS), 1e-13, "%zu taps", n_taps);
        }
}

Test(run_convolve, does_not_depend_on_batches)
{
    static struct sample sample;
    static float whole[TOKENS * CHANNELS], parts[TOKENS * CHANNELS];
    float past[(TAPS - 1) * CHANNELS];

    make(&sample, TAPS, true);
    feed(&sample, TOKENS, whole);
    memcpy(past, sample.past, sizeof past);
    for (size_t batch = 1; batch < 9; batch++) {
        make(&sample, TAPS, true);
        feed(&sample, batch, parts);
        cr_assert_eq(memcmp(whole, parts, sizeof whole), 0, "batches of %zu", batch);
        cr_assert_eq(memcmp(past, sample.past, sizeof past), 0, "batches of %zu", batch);
    }
}
