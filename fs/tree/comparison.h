/* Compares the values of two tensors, by all processors. */
#ifndef GGUFS_FS_COMPARISON_H
#define GGUFS_FS_COMPARISON_H

#include "fs/tree/figure_kernels.h"
#include "gguf/model.h"

#include <stdint.h>

/* A tensor, and the model that it belongs to. */
struct fs_tensor_of {
    const struct gguf_model *model;
    const struct gguf_tensor *tensor; /* its type must have a decoder */
};

/* A weight for each column of each matrix of a tensor, for the sums of products. */
struct fs_column_weights {
    const float *values;  /* n_matrices * n_columns */
    uint64_t n_columns;   /* ne[0] */
    uint64_t n_matrices;  /* divides those of the tensor … */
    uint64_t matrix_rows; /* … which have so many rows each */
};

struct fs_comparison {
    /* Over all pairs of finite values; all weighted but `largest`, the largest difference. */
    struct fs_products products;
    uint64_t largest_at;    /* its first place in row-major order, if it is not 0 */
    uint64_t n_not_finite;  /* pairs in which a value is NaN or infinite; they are in no sum … */
    uint64_t n_only_in_one; /* … and those whose two values are not equal, nor both NaN */
};

/*
 * Compare two tensors with the same number of elements, in row-major order. `weights` may be NULL.
 * The result does not depend on the number of threads. Returns 0, -ENOMEM, or the error of
 * gguf_source_read() with the index of the tensor that could not be read in *failed.
 */
int fs_compare_tensors(const struct fs_tensor_of pair[2], const struct fs_column_weights *weights,
                       struct fs_comparison *comparison, unsigned *failed);

/* Add the sums of another pair of tensors; the place of the largest difference is lost. */
void fs_comparison_add(struct fs_comparison *sum, const struct fs_comparison *more);

/* Return the sum of squared differences over the sum of squares of the first tensor. */
double fs_comparison_nmse(const struct fs_comparison *comparison);

/* Return the cosine of the angle between the tensors; 1 if both are zero, 0 if one is. */
double fs_comparison_cosine(const struct fs_comparison *comparison);

#endif
