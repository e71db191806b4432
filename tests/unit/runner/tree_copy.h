/* What the runner reads of a model's tree, as files in a temporary directory, without a mount. What
 * can't be done fails the test. */
#ifndef GGUFS_TESTS_TREE_COPY_H
#define GGUFS_TESTS_TREE_COPY_H

#include "contrib/runner/tree/open_tree.h"
#include "gguf/model.h"

struct tree_copy {
    char path[64];
};

/* Makes the copy, of a model that may be closed then; removes it. */
void tree_copy_make(const struct gguf_model *model, struct tree_copy *copy);
void tree_copy_remove(const struct tree_copy *copy);

/* Opens the copy. */
struct run_tree tree_copy_open(const struct tree_copy *copy);

/* Empties tensors.json, so that it demands no tensor. */
void tree_copy_demand_nothing(const struct tree_copy *copy);

/* Puts a tensor aside, and a link to another in its place if one is named; puts it back. */
void tree_copy_hide(const struct tree_copy *copy, const char *tensor, const char *other);
void tree_copy_restore(const struct tree_copy *copy, const char *tensor);

#endif
