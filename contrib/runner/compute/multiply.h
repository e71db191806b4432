/* The matrix product of weights, as stored, and rows of floats. */
#pragma once

#include "contrib/runner/compute/tensor.h"

#include <stdbool.h>

/*
 * Choose float or integer products. Float products keep the precision of `x`. Integer products, the
 * default, quantize x to 8 bits (dequant/products.h) if the weights' type has them. Do not call
 * this while run_multiply() runs.
 */
void run_multiply_in_floats(bool in_floats);

/* Weights, and the output of their product. */
struct run_product {
    struct run_tensor weights; /* all weights of a call have the same ne[0] */
    float *out;                /* [n][rows]; overlaps nothing else of the call */
};

/*
 * For each product: out[t][r] = row r of the weights · x[t], for t < n and every row r; x is
 * [n][ne[0]]. A number depends only on the row and x[t], not on n, the other products, the number
 * of threads or the CPU. Several products in one call are faster than several calls: x is quantized
 * once for adjacent products of similar types, and threads wait for each other once. Works in
 * parallel; only one thread may call it at a time.
 */
void run_multiply(const struct run_product *products, size_t n_products, const float *x, size_t n);
