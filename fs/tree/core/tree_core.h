/*
 * A tree of nodes, made from the rows of a table. This file knows no particular row; facts about
 * the model that rows need are in struct fs_facts.
 */
#pragma once

#include "fs/tree/core/image.h"
#include "fs/tree/core/interrupt.h"
#include "fs/tree/core/nodes.h"
#include "fs/tree/core/open_images.h"
#include "fs/tree/core/paths.h"
#include "fs/tree/core/view_row.h"

struct fs_facts;

struct fs_tree {
    const struct gguf_model *model; /* owned by the caller */
    const struct fs_facts *facts;
    const struct fs_table *table; /* of the nodes */
    struct fs_nodes nodes;
    struct fs_open_images images;
    void *user; /* for those who show it */
};

/*
 * Add the nodes of every row, for every subject that it applies to, and seal them. Returns 0,
 * -ENOMEM, -EOVERFLOW, or -EEXIST like fs_nodes_seal().
 */
int fs_tree_begin(struct fs_tree *tree, fs_node_index twins[2]);
void fs_tree_end(struct fs_tree *tree);

static inline const struct fs_node *fs_tree_node(const struct fs_tree *tree, fs_node_index node)
{
    return &tree->nodes.list[node];
}

/* Child `i` of a directory, below its n_children; children are sorted by name. */
static inline fs_node_index fs_tree_child(const struct fs_tree *tree, fs_node_index directory,
                                          uint32_t i)
{
    return tree->nodes.children[tree->nodes.list[directory].first_child + i];
}

/* Write the path of a node without a slash at its start; the root has the path "". */
void fs_node_path(const struct fs_tree *tree, fs_node_index node, char path[FS_PATH_BYTES]);

/*
 * Find the node at a path from the root, like "tensors/output.weight/f32". Follows symbolic links,
 * including the last. Empty components and "." have no effect; ".." goes up, at most to the root.
 * Returns 0, -ENOENT, -ENOTDIR, or -ELOOP.
 */
int fs_tree_find(const struct fs_tree *tree, const char *path, fs_node_index *node);

/* Find the node that a link leads to. Returns as fs_tree_find(). */
int fs_tree_follow(const struct fs_tree *tree, fs_node_index link, fs_node_index *node);

/*
 * Get the size of a node in bytes: 0 for a directory, the length of its target for a link.
 * `interrupt` may be NULL. Returns 0, -ENOMEM, -EIO, or -EINTR.
 */
int fs_tree_size(struct fs_tree *tree, fs_node_index node, const struct fs_interrupt *interrupt,
                 uint64_t *size_bytes);

/*
 * Open a file for fs_image_read(). Give the image back with fs_tree_close(). All users of a file
 * share one image. `interrupt` may be NULL. Returns 0, -ENOMEM, -EINTR, -EISDIR, -EINVAL for a
 * link, or -EIO if the source cannot be read.
 */
int fs_tree_open(struct fs_tree *tree, fs_node_index node, const struct fs_interrupt *interrupt,
                 const struct fs_image **image);

void fs_tree_close(struct fs_tree *tree, const struct fs_image *image);
