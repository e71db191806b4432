/* A view of a tensor as stored: rows of blocks. */
#pragma once

#include "dequant/types.h"

#include <stdint.h>

#define RUN_MAX_DIMS 4

/*
 * A tensor, or some rows of one. ne[0] elements make a row; ne[0] is a multiple of the type's block
 * size. Dimensions that the tensor does not have are 1; none is 0. Small and without ownership:
 * copy it.
 */
struct run_tensor {
    const char *name;
    const struct dequant_type *type;
    uint64_t ne[RUN_MAX_DIMS];
    /* in a mapping, not aligned; reading it can take as long as reading the file */
    const uint8_t *data;
    /* index of row 0 in `data`, which begins at a group of stored rows, or at the tensor's first
     * row if the type has a tail; then `stored_rows` is the number of rows in `data` */
    uint64_t first_row, stored_rows;
};

/* Return the number of rows. */
uint64_t run_tensor_rows(const struct run_tensor *tensor);

/* Return the size of its data. */
uint64_t run_tensor_bytes(const struct run_tensor *tensor);

/* Return `n` rows from row `first` on as a matrix. They must be within the tensor. */
struct run_tensor run_tensor_slice(const struct run_tensor *tensor, uint64_t first, uint64_t n);

/* Decodes n elements from `first` on of row `row`; both are multiples of the type's block size. */
void run_tensor_decode(const struct run_tensor *tensor, uint64_t row, uint64_t first, uint64_t n,
                       float *out);

/* Decodes row `row` to ne[0] floats. */
void run_tensor_decode_row(const struct run_tensor *tensor, uint64_t row, float *out);
