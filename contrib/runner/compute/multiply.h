/* The matrix product of weights, as stored, and rows of floats. */
#ifndef GGUFS_RUNNER_MULTIPLY_H
#define GGUFS_RUNNER_MULTIPLY_H

#include "contrib/runner/compute/tensor.h"

/*
 * out[t][r] = row r of the weights · x[t], for t < n and every row r: x is [n][ne[0]], out is
 * [n][rows], and they do not overlap. A product depends only on the row and x[t], not on n. All
 * products with weights go through this function, so kernels for quantized activations belong here.
 * Works in parallel; must not be called from a parallel region.
 */
void run_multiply(const struct run_tensor *weights, const float *x, size_t n, float *out);

#endif
