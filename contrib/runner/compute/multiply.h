/*
 * The matrix product: weights as they are stored times rows of floats.
 */
#ifndef GGUFS_RUNNER_MULTIPLY_H
#define GGUFS_RUNNER_MULTIPLY_H

#include "contrib/runner/compute/tensor.h"

/*
 * out[t][r] = row r of the weights · x[t], for t < n and every row r of the tensor: x is
 * [n][ne[0]], out [n][rows], neither overlaps the other. Every product is defined by the weights,
 * the row and the tensor's width alone, so it does not depend on n. This is the one door to all
 * products with weights: kernels that work on quantized activations belong behind it. Works in
 * parallel; not to be called from a parallel region.
 */
void run_multiply(const struct run_tensor *weights, const float *x, size_t n, float *out);

#endif
