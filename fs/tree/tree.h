/*
 * The tree of a model: its nodes, and the images of its files. All functions but fs_tree_make...()
 * and fs_tree_free() may be called from any thread.
 */
#ifndef GGUFS_FS_TREE_H
#define GGUFS_FS_TREE_H

#include "fs/tree/image.h"
#include "fs/tree/model_gguf.h"
#include "fs/tree/nodes.h"
#include "fs/tree/value_cache.h"
#include "gguf/model.h"

struct fs_tree {
    const struct gguf_model *model; /* not owned */
    struct fs_nodes nodes;
    struct fs_value_cache values;
    struct fs_shard *shards; /* the files in split/ */
    uint32_t n_shards;
};

/* What a user may want of a tree. All zero: nothing special. */
struct fs_tree_options {
    uint64_t split_bytes; /* 0: no split/ */
};

/*
 * Makes the tree of a model, which must outlive it. `options` may be NULL. *tree is to be freed
 * with fs_tree_free(). Returns 0, or a negative errno with the reason in `report`; *tree is then
 * NULL.
 */
int fs_tree_make_with(const struct gguf_model *model, const struct fs_tree_options *options,
                      struct fs_tree **tree, struct gguf_report *report);

/* The same without options. */
int fs_tree_make(const struct gguf_model *model, struct fs_tree **tree, struct gguf_report *report);

void fs_tree_free(struct fs_tree *tree);

/* The size of a node; 0 for a directory, the length of its target for a symbolic link. Returns 0,
 * -ENOMEM or -EIO. */
int fs_tree_size(struct fs_tree *tree, fs_node_index index, uint64_t *size_bytes);

/*
 * Builds the image of a file, to be freed with fs_image_free(). Returns 0, -ENOMEM, or -EIO if the
 * source can't be read.
 */
int fs_tree_open(struct fs_tree *tree, fs_node_index index, struct fs_image *image);

#endif
