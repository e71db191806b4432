/* The runner's kernels; see contrib/runner/compute/run_kernels.h. */
#include "contrib/runner/compute/run_kernels.h"
#include "dequant/small_floats.h"
#include "tests/kernels/check_kernels.h"
#include "tests/unit/dequant/random_blocks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = 96, STRIDE = N + 5 };

static const struct run_kernels *const plain = &run_kernel_sets[DEQUANT_SET_scalar];

/* Random floats from -scale to scale. */
static void fill(uint64_t *state, float scale, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = scale * ((float)(next_random(state) >> 40) / (float)(1 << 23) - 1);
}

/* ---- attention ---- */

static float a[N * STRIDE], b[N * STRIDE], good[N * STRIDE], got[N * STRIDE];
static uint16_t halves[N * STRIDE];

static bool check_add_products(const struct run_kernels *kernels)
{
    bool is_good = true;
    uint64_t state = 1;

    fill(&state, 2, a, N * STRIDE);
    fill(&state, 3, b, N * STRIDE);
    for (size_t i = 0; i < N * STRIDE; i++)
        halves[i] = dequant_f32_to_f16(b[i]);
    for (size_t n_rows = 0; n_rows <= 9; n_rows++) {
        for (size_t n_columns = 0; n_columns <= N; n_columns += RUN_LANES) {
            const size_t n = (n_rows * 7 + n_columns) % N;
            const bool is_half = (n_rows + n_columns / RUN_LANES) % 2;
            const struct run_matrix right = {is_half ? (const void *)halves : b, STRIDE, is_half,
                                             0};

            fill(&state, 1, good, N * STRIDE);
            memcpy(got, good, sizeof got);
            plain->add_products(a, STRIDE, n_rows, right, n, n_columns, good, STRIDE);
            kernels->add_products(a, STRIDE, n_rows, right, n, n_columns, got, STRIDE);
            is_good &= memcmp(good, got, sizeof got) == 0;
        }
    }
    return is_good;
}

static bool check_transpose(const struct run_kernels *kernels)
{
    bool is_good = true;
    uint64_t state = 2;

    fill(&state, 1, a, N * STRIDE);
    memset(got, 0, sizeof got);
    kernels->transpose(a, STRIDE, N, got, STRIDE);
    for (size_t r = 0; r < N; r++)
        for (size_t c = 0; c < STRIDE; c++)
            is_good &= got[r * STRIDE + c] == (c < RUN_LANES ? a[c * STRIDE + r] : 0);
    return is_good;
}

static const struct run_scoring scorings[] = {
    {1, 0, 0}, {0.125f, 0, 0.5f}, {1, 5, 0}, {3, 50, 0.01f}, {1000, 0, 0}};

/* Weigh two tiles one after the other; scores[][RUN_TILE] become weights. */
static struct run_softmax weigh_two(const struct run_kernels *kernels, size_t begin, size_t end,
                                    const struct run_scoring *scoring, float scores[2][RUN_TILE],
                                    float factors[2])
{
    struct run_softmax softmax = {-INFINITY, 0};

    factors[0] = kernels->weigh(scores[0], begin, end, 200, scoring, &softmax);
    factors[1] = kernels->weigh(scores[1], begin, end, 136, scoring, &softmax);
    return softmax;
}

static bool check_weigh(const struct run_kernels *kernels)
{
    bool is_good = true;
    uint64_t state = 3;

    for (size_t begin = 0; begin < RUN_TILE; begin++) {
        for (size_t end = begin + 1; end <= RUN_TILE; end++) {
            const struct run_scoring *scoring = &scorings[(begin + end) % 5];
            float scores[2][2][RUN_TILE], factors[2][2];
            struct run_softmax softmax[2];

            fill(&state, 4, scores[0][0], 2 * RUN_TILE);
            memcpy(scores[1], scores[0], sizeof scores[1]);
            softmax[0] = weigh_two(plain, begin, end, scoring, scores[0], factors[0]);
            softmax[1] = weigh_two(kernels, begin, end, scoring, scores[1], factors[1]);
            is_good &= memcmp(scores[0], scores[1], sizeof scores[0]) == 0 &&
                       memcmp(factors[0], factors[1], sizeof factors[0]) == 0 &&
                       softmax[0].highest == softmax[1].highest && softmax[0].sum == softmax[1].sum;
        }
    }
    return is_good;
}

static bool check_weigh_reference(void)
{
    bool is_good = true;
    uint64_t state = 4;

    for (size_t round = 0; round < 500; round++) {
        const struct run_scoring *scoring = &scorings[round % 4];
        const size_t begin = next_random(&state) % RUN_TILE;
        const size_t end = begin + 1 + next_random(&state) % (RUN_TILE - begin);
        float scores[2][RUN_TILE], factors[2];
        double expected[2][RUN_TILE] = {{0}}, sum = 0, magnitude = 4;
        struct run_softmax softmax;

        fill(&state, 4, scores[0], 2 * RUN_TILE);
        for (size_t tile = 0; tile < 2; tile++) {
            for (size_t i = begin; i < end; i++) {
                double score = (double)scores[tile][i] * (double)scoring->scale;

                if (scoring->softcap > 0)
                    score = (double)scoring->softcap * tanh(score / (double)scoring->softcap);
                score -= (double)scoring->slope * (200.0 - 64.0 * (double)tile - (double)i);
                sum += expected[tile][i] = exp(score);
                magnitude = fmax(magnitude, fabs(score));
            }
        }
        softmax = weigh_two(plain, begin, end, scoring, scores, factors);
        for (size_t tile = 0; tile < 2; tile++) {
            for (size_t i = begin; i < end; i++) {
                const double weight = (double)scores[tile][i] * (tile ? 1 : (double)factors[1]);
                const double right = expected[tile][i] / sum;

                is_good &= fabs(weight / softmax.sum - right) <= 3e-7 * magnitude * right;
            }
        }
    }
    return is_good;
}

/* ---- functions of elements ---- */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static const struct {
    const char *name;
    size_t offset; /* of the kernel in struct run_kernels */
    double (*right)(double x);
    float from, to, most_ulp;
    float ends[4]; /* at minus infinity, -1e38, 0, 1e38; the first function is for x below 88 */
} functions[] = {
    {"exponentials", offsetof(struct run_kernels, exponentials), exp, -87.33f, 88, 1, {0, 0, 1, 0}},
    {"sigmoids", offsetof(struct run_kernels, sigmoids), sigmoid, -87.33f, 30, 3, {0, 0, 0.5f, 1}},
    {"tangents", offsetof(struct run_kernels, tangents), tanh, -12, 12, 3, {-1, -1, 0, 1}},
};

static run_vector_function_fn *function_of(const struct run_kernels *kernels, size_t i)
{
    run_vector_function_fn *function;

    memcpy(&function, (const char *)kernels + functions[i].offset, sizeof function);
    return function;
}

static bool check_function(const struct run_kernels *kernels, size_t function)
{
    bool is_good = true;

    for (uint32_t bits = 0; bits < 0x42b00000; bits += 1009 * RUN_LANES) {
        float ours[RUN_LANES], expected[RUN_LANES];

        for (uint32_t i = 0; i < RUN_LANES; i++) {
            const uint32_t number = (bits + 1009 * i) | (i % 2 ? 0x80000000 : 0);

            memcpy(&ours[i], &number, sizeof number);
        }
        memcpy(expected, ours, sizeof ours);
        function_of(plain, function)(expected, RUN_LANES);
        function_of(kernels, function)(ours, RUN_LANES);
        is_good &= memcmp(ours, expected, sizeof ours) == 0;
    }
    return is_good;
}

/* The same as the sigmoids and two products. */
static bool check_silu_gates(const struct run_kernels *kernels)
{
    float *const sigmoids = good;
    uint64_t state = 5;

    fill(&state, 40, a, N);
    fill(&state, 2, b, N);
    memcpy(got, a, N * sizeof *got);
    memcpy(sigmoids, a, N * sizeof *sigmoids);
    plain->sigmoids(sigmoids, N);
    kernels->silu_gates(got, b, N);
    for (size_t i = 0; i < N; i++)
        sigmoids[i] = a[i] * sigmoids[i] * b[i];
    return memcmp(got, good, N * sizeof *got) == 0;
}

static bool check_function_reference(size_t i)
{
    float ends[RUN_LANES] = {-INFINITY, -1e38f, 0, 1e38f, -0.0f, NAN};
    bool is_good;
    double worst = 0;

    for (float x = functions[i].from; x < functions[i].to; x += 0.00137f) {
        float y[RUN_LANES] = {x};
        double right, ulp;

        function_of(plain, i)(y, RUN_LANES);
        right = functions[i].right((double)x);
        ulp = (double)(nextafterf(fabsf((float)right), INFINITY) - fabsf((float)right));
        worst = fmax(worst, fabs((double)y[0] - right) / ulp);
    }
    function_of(plain, i)(ends, RUN_LANES);
    is_good =
        worst < (double)functions[i].most_ulp && ends[4] == functions[i].ends[2] && isnan(ends[5]);
    for (size_t end = 0; end < 4; end++)
        is_good &= ends[end] == functions[i].ends[end] || (end == 3 && functions[i].to > 80);
    return is_good;
}

/* ---- recurrences: unit tests compare them with double ---- */

enum { ROWS = 5 };

struct inputs {
    float x[8][N]; /* vectors of a token */
    float state[ROWS * STRIDE], out[N];
};

static void make_inputs(uint64_t *state, struct inputs *inputs)
{
    fill(state, 1, inputs->x[0], 8 * N);
    fill(state, 1, inputs->state, ROWS * STRIDE);
    memset(inputs->out, 0, sizeof inputs->out);
}

/* Run all recurrences with n columns on copies of the inputs, one after the other. */
static void run_steps(const struct run_kernels *kernels, size_t n, struct inputs inputs[6])
{
    for (size_t i = 0; i < 6; i++) {
        struct inputs *in = &inputs[i];
        const struct run_delta_token delta = {ROWS,     in->x[0], in->x[1], in->x[2],
                                              in->x[3], n % 2,    0.7f};
        const struct run_wkv_token wkv = {ROWS,     in->x[0], in->x[1], in->x[2],
                                          in->x[3], in->x[4], in->x[5], in->x[6]};
        const struct run_scan_token scan = {ROWS, in->x[0], in->x[1], in->x[2], 0.3f, 0.8f, 0.1f};

        switch (i) {
        case 0:
            kernels->delta_step(in->state, STRIDE, n, &delta, in->out);
            break;
        case 1:
            kernels->wkv6_step(in->state, STRIDE, n, &wkv, in->out);
            break;
        case 2:
            kernels->wkv7_step(in->state, STRIDE, n, &wkv, in->out);
            break;
        case 3:
            kernels->linear_step(in->state, STRIDE, n, &wkv, in->out);
            break;
        case 4:
            kernels->scan_step(in->state, STRIDE, n, &scan, in->out);
            break;
        default:
            in->out[0] = kernels->scan_channel(in->state, n, in->x[0], in->x[1], in->x[2], 0.3f,
                                               in->x[3][0]);
            kernels->wkv4_step(in->state + STRIDE, in->state + 2 * STRIDE, in->state + 3 * STRIDE,
                               n, in->x[4], in->x[5], in->x[6], in->x[7], in->out + 1);
        }
    }
}

static bool check_steps(const struct run_kernels *kernels)
{
    static struct inputs expected[6], ours[6];
    bool is_good = true;
    uint64_t state = 5;

    for (size_t n = 0; n < N; n++) {
        for (size_t i = 0; i < 6; i++)
            make_inputs(&state, &expected[i]);
        memcpy(ours, expected, sizeof ours);
        run_steps(plain, n, expected);
        run_steps(kernels, n, ours);
        is_good &= memcmp(ours, expected, sizeof ours) == 0;
    }
    return is_good;
}

void check_run_reference(void)
{
    count(check_transpose(plain), "reference", "transposing");
    count(check_silu_gates(plain), "reference", "gates");
    count(check_weigh_reference(), "reference", "weights of attention");
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        count(check_function_reference(i), "reference", functions[i].name);
}

void check_run_set(size_t set, const char *name)
{
    const struct run_kernels *kernels = &run_kernel_sets[set];

    count(check_add_products(kernels), name, "products of matrices");
    count(check_transpose(kernels), name, "transposing");
    count(check_weigh(kernels), name, "weights of attention");
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        count(check_function(kernels, i), name, functions[i].name);
    count(check_silu_gates(kernels), name, "gates");
    count(check_steps(kernels), name, "steps of recurrences");
}
