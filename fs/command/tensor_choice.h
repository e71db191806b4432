/* Chooses tensors of a tree by the patterns on the command line. */
#ifndef GGUFS_FS_TENSOR_CHOICE_H
#define GGUFS_FS_TENSOR_CHOICE_H

#include "fs/tree/tree.h"

#include <stdbool.h>

/*
 * Return true if one of the patterns fits a name, a shell pattern as in glob(7) being allowed, or
 * if there are none. "tensors/" before a pattern has no effect.
 */
bool fs_is_tensor_chosen(const char *const *patterns, int n_patterns, struct gguf_string name);

/*
 * Return the first pattern that fits none of the model's tensors, by their names or their names in
 * GGUF, or NULL.
 */
const char *fs_unused_pattern(const char *const *patterns, int n_patterns,
                              const struct gguf_model *model);

#endif
