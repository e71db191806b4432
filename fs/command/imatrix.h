/* Importance matrices as weights of the columns of a tensor; the format is in importance.h. */
#pragma once

#include "fs/tree/data/comparison.h"
#include "fs/tree/views/importance.h"

/*
 * Get the column weights of a tensor: means of squared inputs, 0 for a matrix without inputs.
 * `by_name` lists the importance matrix's tensors, from gguf_tensors_by_name(). Free
 * weights->values with free(); it is NULL if the importance matrix lacks the tensor. Returns 0,
 * -ENOMEM, -EINVAL if their shape does not fit the tensor, -EDOM unless all sums, counts and
 * weights are finite and not negative, or the error of reading them.
 */
int fs_imatrix_get(const struct gguf_model *imatrix, const struct gguf_tensor *const *by_name,
                   const struct gguf_tensor *tensor, struct fs_column_weights *weights);
