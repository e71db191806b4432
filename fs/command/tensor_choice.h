/* Chooses tensors of a tree by the patterns on the command line. */
#pragma once

#include "fs/tree/tree.h"

#include <stdbool.h>

/*
 * Return true if one of the patterns, shell patterns as in glob(7), matches the name, or if
 * n_patterns is 0. A leading "tensors/" of a pattern is ignored.
 */
bool fs_is_tensor_chosen(const char *const *patterns, int n_patterns, struct gguf_string name);

/*
 * Check that each pattern matches the name or GGUF name of a tensor of one of `models`, a
 * NULL-terminated list. Otherwise prints an error about `what`, with a wider pattern if that
 * matches. Returns an exit status.
 */
int fs_check_patterns(const char *const *patterns, int n_patterns,
                      const struct gguf_model *const *models, const char *what);
