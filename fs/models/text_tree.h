/*
 * Trees of a few texts: the files beside the models, the error in place of a model, links to one.
 */
#pragma once

#include "fs/tree/core/tree_core.h"

struct fs_named_text {
    const char *name;
    char *text; /* owned; NULL: the tree lacks the file */
    size_t length;
    bool is_link; /* the text is its target */
};

enum { FS_MAX_TEXTS = 3 };

/*
 * Make a tree of files and links. It takes ownership of the texts, also on failure. Its model has
 * no files. Free *tree with fs_text_tree_free(). Returns 0 or -ENOMEM; or `result`, if the making
 * of the texts has failed.
 */
int fs_text_tree_make(int result, const struct fs_named_text texts[FS_MAX_TEXTS],
                      struct fs_tree **tree);
void fs_text_tree_free(struct fs_tree *tree);

/* Return true for a tree of texts, false for the tree of a model. */
bool fs_is_text_tree(const struct fs_tree *tree);
