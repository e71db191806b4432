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

static void norm_row(void *context, size_t row)
{
    const struct call *call = context;
    const size_t width = call->width, at = row % call->n_groups * width;
    const float *x = call->x + row * call->stride;
    const float *weight = call->weight ? call->weight + at : NULL;
    const float *bias = call->bias ? call->bias + at : NULL;
    float *out = call->out + row * call->stride;
    double mean = 0, sum = 0;
    float scale;

    if (call->kind == RUN_NORM_LAYER) {
        for (size_t i = 0; i < width; i++)
            mean += (double)x[i];
        mean /= (double)width;
    }
    for (size_t i = 0; i < width; i++) {
        const double difference = (double)x[i] - mean;

        sum += difference * difference;
    }
    scale = (float)(1 / sqrt(sum / (double)width + (double)call->epsilon));
    for (size_t i = 0; i < width; i++) {
        float value = (float)((double)x[i] - mean) * scale;

        if (weight)
            value *= weight[i];
        if (bias)
            value += bias[i];
        out[i] = value;
    }
}

void run_norm(enum run_norm_kind kind, float epsilon, const float *x, size_t n, size_t width,
              size_t stride, const float *weight, const float *bias, size_t n_groups, float *out)
{
    struct call call = {kind, epsilon, x, weight, bias, width, stride, n_groups, out};

    run_parallel_for_each(n, run_grain(PIECE_ELEMENTS, width), norm_row, &call);
}
