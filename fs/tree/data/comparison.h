/* Compares the values of two tensors, on all processors. */
#pragma once

#include "fs/tree/data/statistics_kernels.h"
#include "gguf/model.h"

#include <stdint.h>

/* A tensor, and the model that it belongs to. */
struct fs_tensor_of {
    const struct gguf_model *model;
    const struct gguf_tensor *tensor; /* its type must have a decoder */
};

struct fs_comparison {
    /* Sums over all pairs of finite values; `largest` is the largest difference. */
    struct fs_products products;
    uint64_t largest_at;    /* row-major index of its first pair; undefined if it is 0 */
    uint64_t n_not_finite;  /* pairs with a NaN or infinite value; the sums leave them out */
    uint64_t n_only_in_one; /* n_not_finite less the pairs of equal values and of two NaNs */
};

/*
 * Compare two tensors with the same number of elements, in row-major order. The result does not
 * depend on the number of threads. Returns 0, -ENOMEM, or the error of gguf_file_read() with the
 * index of the tensor that could not be read in *failed.
 */
int fs_compare_tensors(const struct fs_tensor_of pair[2], struct fs_comparison *comparison,
                       unsigned *failed);

/* Add the sums of another pair of tensors; the place of the largest difference is lost. */
void fs_comparison_add(struct fs_comparison *sum, const struct fs_comparison *more);

/* Return the sum of squared differences over the sum of squares of the first tensor. */
double fs_comparison_nmse(const struct fs_comparison *comparison);

/* Return the cosine of the angle between the tensors; 1 if both are zero, 0 if one is. */
double fs_comparison_cosine(const struct fs_comparison *comparison);
