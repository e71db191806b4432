/*
 * Dot products of decoded rows, what a matrix product consists of.
 */
#ifndef GGUFS_DEQUANT_DOT_H
#define GGUFS_DEQUANT_DOT_H

#include <stddef.h>

/*
 * Adds to out[c * out_stride + r] the dot product of row r of `w` (n_rows rows, w_stride floats
 * from one to the next) and row c of `x` (n_columns, x_stride), of n floats each. Defined to the
 * bit: sum i % 16 gets the fused multiply-add of element i; the 16 sums are added in pairs, halving
 * their number (i and i + 8, i + 4, i + 2, i + 1). So a product depends neither on the CPU nor on
 * what else is computed with it. `out` overlaps neither operand.
 */
typedef void dequant_dot_fn(const float *w, size_t w_stride, size_t n_rows, const float *x,
                            size_t x_stride, size_t n_columns, size_t n, float *out,
                            size_t out_stride);

enum { DEQUANT_DOT_LANES = 16 };

static inline float dequant_dot_sum(float lanes[DEQUANT_DOT_LANES])
{
    for (size_t half = DEQUANT_DOT_LANES / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++)
            lanes[i] += lanes[i + half];
    return lanes[0];
}

/* The reference; dequant_dot() is faster. */
dequant_dot_fn dequant_dot_reference;

/* The same by the kernels that were chosen, see dequant/kernels.h. */
dequant_dot_fn dequant_dot;

#endif
