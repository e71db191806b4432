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
#pragma once

#include "fs/tree/facts/facts.h"
#include "fs/tree/core/tree_core.h"

/* Count a finding. Use it as the `each` of a report whose `user` is a struct fs_findings. */
void fs_findings_add(void *findings, const struct gguf_finding *finding);

/* Options of a tree. All zero: defaults. */
struct fs_tree_options {
    struct fs_split split;        /* of split/; all zero: none */
    uint64_t hf_shard_bytes;      /* of data in a file of weights in hf/; 0: FS_HF_SHARD_BYTES */
    enum fs_dtype dtype;          /* of safetensors files */
    enum fs_export_choice export; /* of model.gguf and split/ */
    struct gguf_model
        *projector; /* of the model; the tree takes it over, even on failure; or NULL */
    /*
     * Findings of `ggufs --check` for the summary, collected while the model was opened; NULL if
     * there are none. Copied.
     */
    const struct fs_findings *findings;
    struct fs_extra *extras; /* files to show; the tree takes them, also on failure */
    size_t n_extras;
};

void fs_extras_free(struct fs_extra *extras, size_t n_extras);

/*
 * Make the tree of a model, which must outlive it. `options` may be NULL. Free *tree with
 * fs_tree_free(). Returns 0, or a negative errno with the reason in `report`; *tree is then NULL.
 */
int fs_tree_make(const struct gguf_model *model, const struct fs_tree_options *options,
                 struct fs_tree **tree, struct gguf_report *report);

/* Free a tree, and the images that are still open. */
void fs_tree_free(struct fs_tree *tree);
