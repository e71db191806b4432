#include "contrib/runner/compute/norm.h"

#include "contrib/runner/compute/thread_pool.h"

#include <math.h>

/* Elements in a piece of work. */
#define PIECE_ELEMENTS 8192

/* The arguments of run_norm(). */
struct call {
    enum run_norm_kind kind;
    float epsilon;
    const float *x, *weight, *bias;
    size_t width, stride, n_groups;
    float *out;
};

/* Return the sum of (x[i] - mean)^power, power 1 or 2, of some sums side by side. */
static double sum_of(const float *x, size_t n, double mean, int power)
{
    enum { LANES = 8 };
    double sums[LANES] = {0}, sum = 0;
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
#pragma omp simd
        for (size_t lane = 0; lane < LANES; lane++) {
            const double difference = (double)x[i + lane] - mean;

            sums[lane] += power == 1 ? difference : difference * difference;
        }
    for (; i < n; i++)
        sum += power == 1 ? (double)x[i] - mean : ((double)x[i] - mean) * ((double)x[i] - mean);
    for (size_t lane = 0; lane < LANES; lane++)
        sum += sums[lane];
    return sum;
}

static void norm_row(void *context, size_t row)
{
    const struct call *call = context;
    const size_t width = call->width, at = row % call->n_groups * width;
    const float *x = call->x + row * call->stride;
    const float *weight = call->weight ? call->weight + at : NULL;
    const float *bias = call->bias ? call->bias + at : NULL;
    float *out = call->out + row * call->stride;
    const double mean = call->kind == RUN_NORM_LAYER ? sum_of(x, width, 0, 1) / (double)width : 0;
    const float scale =
        (float)(1 / sqrt(sum_of(x, width, mean, 2) / (double)width + (double)call->epsilon));

#pragma omp simd
    for (size_t i = 0; i < width; i++)
        out[i] = (float)((double)x[i] - mean) * scale;
    if (weight)
#pragma omp simd
        for (size_t i = 0; i < width; i++)
            out[i] *= weight[i];
    if (bias)
#pragma omp simd
        for (size_t i = 0; i < width; i++)
            out[i] += bias[i];
}

void run_norm(enum run_norm_kind kind, float epsilon, const float *x, size_t n, size_t width,
              size_t stride, const float *weight, const float *bias, size_t n_groups, float *out)
{
    struct call call = {kind, epsilon, x, weight, bias, width, stride, n_groups, out};

    run_parallel_for_each(n, run_grain(PIECE_ELEMENTS, width), norm_row, &call);
}

void run_l2_norm(float *x, size_t n, size_t n_heads, size_t width, size_t stride, float epsilon)
{
    for (size_t i = 0; i < n * n_heads; i++) {
        float *vector = x + i / n_heads * stride + i % n_heads * width;
        double sum = 0;
        float scale;

        for (size_t j = 0; j < width; j++)
            sum += (double)vector[j] * (double)vector[j];
        scale = (float)(1 / sqrt(sum + (double)epsilon));
        for (size_t j = 0; j < width; j++)
            vector[j] *= scale;
    }
}
