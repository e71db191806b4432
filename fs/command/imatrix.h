/* Importance matrices as weights of the columns of a tensor; fs/tree/importance.h has the format.
 */
#ifndef GGUFS_FS_IMATRIX_H
#define GGUFS_FS_IMATRIX_H

#include "fs/tree/comparison.h"
#include "fs/tree/importance.h"

/*
 * Get the weights of a tensor: means of squares, 0 for a matrix without inputs. Free values with
 * free(). If there are none for this name, they are NULL. Returns 0, -ENOMEM, -EINVAL if their
 * shape does not fit the tensor, -EDOM unless all sums, counts and weights are finite and not
 * negative, or the error of reading them.
 */
int fs_imatrix_get(const struct gguf_model *imatrix, const struct gguf_tensor *tensor,
                   struct fs_column_weights *weights);

#endif
