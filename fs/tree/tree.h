/*
 * The tree of a model: its nodes, and the contents of its files. It needs no mount:
 *
 *     fs_tree_make(model, NULL, &tree, &report);
 *     fs_tree_find(tree, "tensors/output.weight/f32", &node);
 *     fs_tree_open(tree, node, NULL, &image);
 *     n = fs_image_read(image, offset, length, buffer);
 *     fs_tree_close(tree, image);
 *     fs_tree_free(tree);
 *
 * All functions but fs_tree_make() and fs_tree_free() may be called from any thread.
 */
#ifndef GGUFS_FS_TREE_H
#define GGUFS_FS_TREE_H

#include "fs/tree/export.h"
#include "fs/tree/hf/vocabulary_index.h"
#include "fs/tree/image.h"
#include "fs/tree/interrupt.h"
#include "fs/tree/kept_statistics.h"
#include "fs/tree/nodes.h"
#include "fs/tree/open_images.h"
#include "fs/tree/safetensors.h"
#include "fs/tree/split.h"
#include "fs/tree/tensor_pairs.h"
#include "gguf/model.h"
#include "gguf/orig_shapes.h"

/* The findings in a model file: their number, and the first one. All zero: none. */
struct fs_findings {
    size_t n_findings;
    char first[768]; /* one printable line */
};

/* Count a finding. Use it as the `each` of a report whose `user` is a struct fs_findings. */
void fs_findings_add(void *findings, const struct gguf_finding *finding);

struct fs_hf_checkpoint;

struct fs_tree {
    const struct gguf_model *model; /* owned by the caller */
    struct fs_nodes nodes;
    struct fs_export export; /* the types of tensors in model.gguf and split/ */
    struct fs_shard *shards; /* the files in split/ */
    uint32_t n_shards;
    struct gguf_shape *shapes;     /* by tensor, if they differ from `ne`; NULL if none does */
    struct fs_tensor_pairs *pairs; /* tensors that belong together; NULL if none do */
    struct fs_hf_checkpoint *hf;   /* hf/, or the reasons why there is none */
    enum fs_dtype dtype;
    struct fs_vocabulary *vocabulary;
    struct fs_findings findings;
    struct fs_open_images images;
    struct fs_kept_statistics *statistics; /* owned */
};

/* Options of a tree. All zero: defaults. */
struct fs_tree_options {
    uint64_t split_bytes;         /* 0: no split/ */
    uint64_t hf_shard_bytes;      /* of data in a file of weights in hf/; 0: FS_HF_SHARD_BYTES */
    enum fs_dtype dtype;          /* of safetensors files */
    enum fs_export_choice export; /* of model.gguf and split/ */
    /*
     * Findings of `ggufs --check` for the summary, collected while the model was opened; NULL if
     * there are none. Copied.
     */
    const struct fs_findings *findings;
};

/*
 * Make the tree of a model, which must outlive it. `options` may be NULL. Free *tree with
 * fs_tree_free(). Returns 0, or a negative errno with the reason in `report`; *tree is then NULL.
 */
int fs_tree_make(const struct gguf_model *model, const struct fs_tree_options *options,
                 struct fs_tree **tree, struct gguf_report *report);

/* Free a tree, and the images that are still open. */
void fs_tree_free(struct fs_tree *tree);

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

#endif
