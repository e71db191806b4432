/*
 * A copy of a model's tree in a temporary directory, with the files that the runner reads. A
 * function that cannot do its task fails the test.
 */
#pragma once

#include "contrib/runner/tree/weights.h"
#include "gguf/model.h"

struct tree_copy {
    char path[64];
};

/* Make the copy. The model may be closed afterwards. */
void tree_copy_make(const struct gguf_model *model, struct tree_copy *copy);
void tree_copy_remove(const struct tree_copy *copy);

/* List the tensors that are there in tensors.json, and open the tree. */
struct run_tree tree_copy_open(const struct tree_copy *copy);

/*
 * Move a tensor away, and put a link to `other` in its place unless that is NULL.
 * tree_copy_restore() moves it back.
 */
void tree_copy_hide(const struct tree_copy *copy, const char *tensor, const char *other);
void tree_copy_restore(const struct tree_copy *copy, const char *tensor);
