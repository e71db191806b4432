/* The matrix product of weights, as stored, and rows of floats. */
#ifndef GGUFS_RUNNER_MULTIPLY_H
#define GGUFS_RUNNER_MULTIPLY_H

#include "contrib/runner/compute/tensor.h"

#include <stdbool.h>

/*
 * Choose how weights are multiplied: in floats, which takes no precision from `x`, or, where the
 * type allows it, in integers, with x quantized to 8 bits (dequant/products.h). Integers are the
 * default. Not to be called while run_multiply() runs.
 */
void run_multiply_in_floats(bool in_floats);

/*
 * out[t][r] = row r of the weights · x[t], for t < n and every row r: x is [n][ne[0]], out is
 * [n][rows], and they do not overlap. A product depends only on the row and x[t], not on n, the
 * number of threads or the CPU. Works in parallel; only one thread may call it at a time.
 */
void run_multiply(const struct run_tensor *weights, const float *x, size_t n, float *out);

struct run_product {
    struct run_tensor weights; /* all of the same ne[0] */
    float *out;
};

/*
 * The same for several weights and one x, which is faster than one after the other: x is quantized
 * once, and threads wait for each other once. Neighbours should have types alike.
 */
void run_multiply_all(const struct run_product *products, size_t n_products, const float *x,
                      size_t n);

#endif
