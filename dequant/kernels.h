/*
 * Calls the functions of the type table in the kernel set for this CPU. The set is chosen once, at
 * the start. Results are the same to the bit in all sets.
 */
#pragma once

#include "dequant/rows.h"

struct dequant_kernel_set {
    const char *name; /* "scalar", "avx2", "avx512" or "neon" */
    bool (*is_supported)(void);
};

/*
 * The sets of this program, from the plainest to the best; NULL after the last. The slots in the
 * type table have the same indices.
 */
const struct dequant_kernel_set *dequant_kernel_set_at(size_t index);

/*
 * Choose the set `name`, or if it is NULL the best set that the CPU supports. Call it before
 * starting threads; without a call, the reference is used. Returns 0, -EINVAL for an unknown name,
 * or -ENOTSUP if the CPU does not support the set.
 */
int dequant_choose_kernels(const char *name);

/* The chosen set. */
const struct dequant_kernel_set *dequant_chosen_kernels(void);

/*
 * Return the index of the set used for the integer products of dequant/products.h: the chosen set,
 * or a plainer set if the CPU lacks instructions that the chosen set's products use.
 */
size_t dequant_product_set(void);

/*
 * Decode blocks of a row by the chosen kernels; see dequant_decode_fn. The type must be decodable.
 */
void dequant_decode_row(const struct dequant_type *type, struct dequant_row row,
                        const void *restrict blocks, float *restrict out, size_t n_blocks);

/* The same for a type for which dequant_has_row_layout() is false; blocks may span rows. */
void dequant_decode(const struct dequant_type *type, const void *restrict blocks,
                    float *restrict out, size_t n_blocks);

/*
 * Decode elements `first` to `first` + n - 1 of a tensor whose data are all in memory. `first` and
 * n are multiples of block_elements; `out` is aligned for float.
 */
void dequant_decode_elements(const struct dequant_type *type, struct dequant_shape shape,
                             const void *data, uint64_t first, uint64_t n, float *out);

/* Encode by the chosen kernels; see dequant_encode_fn. The type must have an encoder. */
void dequant_encode(const struct dequant_type *type, const void *restrict values,
                    void *restrict out, size_t n);

/* Dot products by the chosen kernels; see dequant_dot_fn. The type must have `dot`. */
void dequant_dot_rows(const struct dequant_type *type, const void *w, size_t w_stride_bytes,
                      size_t n_rows, const float *x, size_t x_stride, size_t n_columns, size_t n,
                      float *out, size_t out_stride);

/* Dot products of rows of floats by the chosen kernels; see dequant_dot_fn. Strides in floats. */
void dequant_dot(const float *w, size_t w_stride, size_t n_rows, const float *x, size_t x_stride,
                 size_t n_columns, size_t n, float *out, size_t out_stride);
