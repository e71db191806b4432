#include "contrib/runner/compute/norm.h"

#include <math.h>
#include <stdbool.h>

/* With fewer elements, a team of threads costs more than it saves. */
#define PARALLEL_ELEMENTS 16384

static void norm_row(enum run_norm_kind kind, float epsilon, const float *x, size_t width,
                     const float *weight, const float *bias, float *out)
{
    double mean = 0, sum = 0;
    float scale;

    if (kind == RUN_NORM_LAYER) {
        for (size_t i = 0; i < width; i++)
            mean += (double)x[i];
        mean /= (double)width;
    }
    for (size_t i = 0; i < width; i++) {
        const double difference = (double)x[i] - mean;

        sum += difference * difference;
    }
    scale = (float)(1 / sqrt(sum / (double)width + (double)epsilon));
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
#pragma omp parallel for schedule(static) if (n * width > PARALLEL_ELEMENTS)
    for (size_t i = 0; i < n; i++) {
        const size_t at = i % n_groups * width;

        norm_row(kind, epsilon, x + i * stride, width, weight ? weight + at : NULL,
                 bias ? bias + at : NULL, out + i * stride);
    }
}
