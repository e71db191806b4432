/*
 * Importance matrices: how much each column of a tensor counts. The format is that of llama.cpp's
 * llama-imatrix: a GGUF file with the sums of squares of a column's inputs, NAME.in_sum2, and the
 * number of inputs, NAME.counts, for each matrix of tensor NAME.
 */
#ifndef GGUFS_FS_IMATRIX_H
#define GGUFS_FS_IMATRIX_H

#include "fs/tree/comparison.h"

/* Return true if a model is an importance matrix. */
bool fs_is_imatrix(const struct gguf_model *model);

/*
 * Get the weights of a tensor: means of squares, 0 for a matrix without inputs. Free values with
 * free(). If there are none for this name, they are NULL. Returns 0, -ENOMEM, -EINVAL if their
 * shape does not fit the tensor, -EDOM unless all sums, counts and weights are finite and not
 * negative, or the error of reading them.
 */
int fs_imatrix_get(const struct gguf_model *imatrix, const struct gguf_tensor *tensor,
                   struct fs_column_weights *weights);

#endif
