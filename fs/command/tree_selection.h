/* Selects nodes of a tree by paths from the root, or by patterns. */
#pragma once

#include "fs/tree/core/paths.h"
#include "fs/tree/tree.h"

enum fs_choice {
    FS_NOT_CHOSEN,
    FS_HOLDS_CHOSEN, /* a directory that is not chosen but contains chosen nodes */
    FS_CHOSEN,
};

/* The choice for each node of a tree. */
struct fs_selection {
    const struct fs_tree *tree;
    unsigned char *choices; /* enum fs_choice; owned */
};

/* Start with nothing chosen. Returns 0 or -ENOMEM. fs_selection_end() frees it. */
int fs_selection_begin(struct fs_selection *selection, const struct fs_tree *tree);
void fs_selection_end(struct fs_selection *selection);

/*
 * Choose the nodes that `pattern` names, and everything inside a directory that it names. A
 * component that is not a name in its directory is a shell pattern as in glob(7). Symbolic links
 * are followed except as the last component. Returns the number of nodes named.
 */
uint64_t fs_selection_add(struct fs_selection *selection, const char *pattern);

/* Choose every symbolic link that leads to something chosen, or to a directory that holds it. */
void fs_selection_add_links(struct fs_selection *selection);

static inline enum fs_choice fs_choice_of(const struct fs_selection *selection, fs_node_index node)
{
    return (enum fs_choice)selection->choices[node];
}
