/*
 * Normalization of rows.
 */
#ifndef GGUFS_RUNNER_NORM_H
#define GGUFS_RUNNER_NORM_H

#include <stddef.h>

enum run_norm_kind {
    RUN_NORM_RMS,   /* x / sqrt(mean(x²) + epsilon), Zhang and Sennrich 2019 */
    RUN_NORM_LAYER, /* (x - mean(x)) / sqrt(variance(x) + epsilon), Ba et al. 2016 */
};

/*
 * Normalizes n rows of `width` floats from x, `stride` floats from one to the next, to out, which
 * has the same stride and may be x. Then multiplies with the weights and adds the biases, where
 * these are not NULL: weights are [n_groups][width], and row i takes those of group i % n_groups.
 * Sums are in double.
 */
void run_norm(enum run_norm_kind kind, float epsilon, const float *x, size_t n, size_t width,
              size_t stride, const float *weight, const float *bias, size_t n_groups, float *out);

#endif
