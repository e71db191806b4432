/* Norms and activations of the runner, compared with their formulas in double. */
#include "contrib/runner/compute/activation.h"
#include "contrib/runner/compute/norm.h"
#include "contrib/runner/compute/thread_pool.h"
#include "tests/unit/runner/run_numbers.h"
#include "tests/unit/runner/thread_pool_checks.h"

#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void norm_reference(enum run_norm_kind kind, double epsilon, const float *x, size_t width,
                           const float *weight, const float *bias, double *out)
{
    double mean = 0, squares = 0;

    for (size_t i = 0; i < width; i++)
        mean += (double)x[i] / (double)width;
    if (kind == RUN_NORM_RMS)
        mean = 0;
    for (size_t i = 0; i < width; i++)
        squares += ((double)x[i] - mean) * ((double)x[i] - mean);
    for (size_t i = 0; i < width; i++) {
        out[i] = ((double)x[i] - mean) / sqrt(squares / (double)width + epsilon);
        out[i] *= weight ? (double)weight[i] : 1;
        out[i] += bias ? (double)bias[i] : 0;
    }
}

static void check_norm(enum run_norm_kind kind, size_t n, size_t width, size_t stride,
                       size_t n_groups, bool has_weight, bool has_bias)
{
    uint64_t state = n * 1000 + width;
    float *x = numbers_make(&state, 3, n * stride), *out = numbers_make(&state, 3, n * stride);
    float *weight = numbers_make(&state, 2, n_groups * width);
    float *bias = numbers_make(&state, 1, n_groups * width);
    float *gap = numbers_make(&state, 1, n * stride);
    double *expected = numbers_alloc(width, sizeof *expected);

    for (size_t i = 0; i < n * stride; i++)
        x[i] += 1; /* so that the means are not 0 */
    memcpy(gap, out, n * stride * sizeof *out);
    run_norm(kind, 1e-3f, x, n, width, stride, has_weight ? weight : NULL, has_bias ? bias : NULL,
             n_groups, out);
    for (size_t i = 0; i < n; i++) {
        const size_t group = i % n_groups * width;

        norm_reference(kind, (double)1e-3f, x + i * stride, width,
                       has_weight ? weight + group : NULL, has_bias ? bias + group : NULL,
                       expected);
        numbers_expect_near("norm", out + i * stride, expected, width, 1e-6);
        numbers_expect_same("the gap between rows", out + i * stride + width,
                            gap + i * stride + width, stride - width);
    }
    run_norm(kind, 1e-3f, x, n, width, stride, has_weight ? weight : NULL, has_bias ? bias : NULL,
             n_groups, x);
    for (size_t i = 0; i < n; i++)
        numbers_expect_same("in place", x + i * stride, out + i * stride, width);
    free(x);
    free(out);
    free(weight);
    free(bias);
    free(gap);
    free(expected);
}

TestSuite(run_norm, .init = thread_pool_begin_test, .fini = run_thread_pool_end);

Test(run_norm, kinds_weights_biases_groups_and_strides)
{
    static const enum run_norm_kind kinds[] = {RUN_NORM_RMS, RUN_NORM_LAYER};

    for (size_t k = 0; k < COUNT(kinds); k++) {
        for (int parts = 0; parts < 4; parts++) {
            const bool has_weight = parts & 1, has_bias = parts & 2;

            check_norm(kinds[k], 1, 1, 1, 1, has_weight, has_bias);
            check_norm(kinds[k], 5, 64, 64, 1, has_weight, has_bias);
            check_norm(kinds[k], 7, 33, 40, 1, has_weight, has_bias);
            check_norm(kinds[k], 12, 16, 16, 4, has_weight, has_bias);
            check_norm(kinds[k], 40, 1024, 1030, 5, has_weight, has_bias);
        }
    }
}

Test(run_norm, small_differences_of_large_numbers)
{
    enum { WIDTH = 4096 };
    float x[WIDTH], out[WIDTH];
    double expected[WIDTH];

    for (size_t i = 0; i < WIDTH; i++)
        x[i] = 10000 + (float)(i % 2);
    run_norm(RUN_NORM_LAYER, 0, x, 1, WIDTH, WIDTH, NULL, NULL, 1, out);
    for (size_t i = 0; i < WIDTH; i++)
        expected[i] = i % 2 ? 1 : -1;
    numbers_expect_near("norm", out, expected, WIDTH, 1e-6);
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double activation_reference(enum run_activation activation, const struct run_xielu *xielu,
                                   double x)
{
    switch (activation) {
    case RUN_SILU:
        return x * sigmoid(x);
    case RUN_GELU:
        return x / 2 * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case RUN_GELU_ERF:
        return x / 2 * (1 + erf(x / sqrt(2)));
    case RUN_RELU:
        return x > 0 ? x : 0;
    case RUN_RELU_SQUARED:
        return x > 0 ? x * x : 0;
    case RUN_XIELU:
        if (x > 0)
            return (double)xielu->alpha_p * x * x + (double)xielu->beta * x;
        return (expm1(fmin(x, (double)xielu->epsilon)) - x) * (double)xielu->alpha_n +
               (double)xielu->beta * x;
    case RUN_SIGMOID:
        return sigmoid(x);
    case RUN_TANH:
        return tanh(x);
    case RUN_IDENTITY:
        return x;
    case RUN_SWIGLU_OAI:
        break;
    }
    return NAN;
}

static double gated_reference(enum run_activation activation, double gate, double up)
{
    if (activation == RUN_SWIGLU_OAI) {
        gate = fmin(gate, 7);
        up = fmax(fmin(up, 7), -7);
        return gate * sigmoid(1.702 * gate) * (up + 1);
    }
    return activation_reference(activation, NULL, gate) * up;
}

/* Enough values for several threads. */
enum { N = 40001 };

TestSuite(run_activation, .init = thread_pool_begin_test, .fini = run_thread_pool_end);

Test(run_activation, functions_of_one_operand)
{
    static const enum run_activation all[] = {RUN_SILU,    RUN_GELU,         RUN_GELU_ERF,
                                              RUN_RELU,    RUN_RELU_SQUARED, RUN_XIELU,
                                              RUN_SIGMOID, RUN_TANH,         RUN_IDENTITY};
    const struct run_xielu xielu = {0.8f, 0.7f, 0.5f, -1e-6f};
    float *x = numbers_alloc(N, sizeof *x);
    double *expected = numbers_alloc(N, sizeof *expected);

    for (size_t a = 0; a < COUNT(all); a++) {
        for (size_t i = 0; i < N; i++) {
            x[i] = -12 + 24 * (float)i / (N - 1);
            expected[i] = activation_reference(all[a], &xielu, (double)x[i]);
        }
        run_activate(all[a], all[a] == RUN_XIELU ? &xielu : NULL, x, N);
        numbers_expect_near("activation", x, expected, N, 2e-7);
    }
    free(x);
    free(expected);
}

Test(run_activation, functions_with_a_gate)
{
    static const enum run_activation all[] = {RUN_SILU,    RUN_GELU,         RUN_GELU_ERF,
                                              RUN_RELU,    RUN_RELU_SQUARED, RUN_SWIGLU_OAI,
                                              RUN_SIGMOID, RUN_TANH,         RUN_IDENTITY};
    uint64_t state = 1;
    float *gate = numbers_alloc(N, sizeof *gate), *up = numbers_alloc(N, sizeof *up);
    double *expected = numbers_alloc(N, sizeof *expected);

    for (size_t a = 0; a < COUNT(all); a++) {
        numbers_fill(&state, 12, gate, N);
        numbers_fill(&state, 12, up, N);
        for (size_t i = 0; i < N; i++)
            expected[i] = gated_reference(all[a], (double)gate[i], (double)up[i]);
        run_activate_gated(all[a], gate, up, N);
        numbers_expect_near("gated activation", gate, expected, N, 3e-7);
    }
    free(gate);
    free(up);
    free(expected);
}

Test(run_activation, large_arguments_are_finite)
{
    float x[] = {-1e4f, -100, -88, 0, 88, 100, 1e4f};

    run_activate(RUN_SILU, NULL, x, COUNT(x));
    cr_expect(x[0] == 0 && x[3] == 0 && x[6] == 1e4f);
    for (size_t i = 0; i < COUNT(x); i++)
        cr_expect(isfinite(x[i]));
    cr_expect_float_eq(run_softplus(0), logf(2), 1e-6f);
    cr_expect_float_eq(run_softplus(-50), 0, 1e-6f);
    cr_expect_float_eq(run_softplus(19.9f), 19.9f, 1e-5f);
    cr_expect_float_eq(run_softplus(1000), 1000, 1e-6f);
    cr_expect_float_eq(run_sigmoid(-1000), 0, 1e-6f);
    cr_expect_float_eq(run_sigmoid(1000), 1, 1e-6f);
}

Test(run_activation, softmax)
{
    float x[] = {1000, 1001, 999, -INFINITY}, one = -3;
    const double sum = 1 + exp(1) + exp(-1);
    const double expected[] = {1 / sum, exp(1) / sum, exp(-1) / sum, 0};

    run_softmax(x, COUNT(x));
    numbers_expect_near("softmax", x, expected, COUNT(x), 1e-7);
    run_softmax(&one, 1);
    cr_expect_eq(one, 1);
}
