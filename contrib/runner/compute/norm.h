/* Normalization of rows. */
#pragma once

#include <stddef.h>

enum run_norm_kind {
    RUN_NORM_RMS,   /* x / sqrt(mean(x²) + epsilon), Zhang and Sennrich 2019 */
    RUN_NORM_LAYER, /* (x - mean(x)) / sqrt(variance(x) + epsilon), Ba et al. 2016 */
};

/*
 * out = n normalized rows of `width` floats of x, times weights, plus biases. Rows of x and out are
 * `stride` floats apart; out may be x. weight and bias are [n_groups][width] or NULL; row i uses
 * group i % n_groups. Sums are computed in double.
 */
void run_norm(enum run_norm_kind kind, float epsilon, const float *x, size_t n, size_t width,
              size_t stride, const float *weight, const float *bias, size_t n_groups, float *out);

/*
 * Divide vectors by their lengths, x = x / √(Σ x² + epsilon): n rows, `stride` floats apart, of
 * n_heads vectors of `width` floats.
 */
void run_l2_norm(float *x, size_t n, size_t n_heads, size_t width, size_t stride, float epsilon);
