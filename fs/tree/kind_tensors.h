/*
 * Lines of summary.txt about the tensors of a file that is no plain language model. Each function
 * writes a line with the label, or nothing if there is nothing to say.
 */
#ifndef GGUFS_FS_KIND_TENSORS_H
#define GGUFS_FS_KIND_TENSORS_H

#include "fs/tree/sink.h"

struct fs_tree;

/* Low-rank adapters: the rank, alpha with the scale that follows, and the tensors they change. */
void fs_kind_write_rank(struct fs_sink *sink, const struct fs_tree *tree, const char *label);
void fs_kind_write_alpha(struct fs_sink *sink, const struct fs_tree *tree, const char *label);
void fs_kind_write_targets(struct fs_sink *sink, const struct fs_tree *tree, const char *label);

/* Importance matrices: the number of tensors, and of those that cannot be used. */
void fs_kind_write_importance(struct fs_sink *sink, const struct fs_tree *tree, const char *label);

/* Control vectors: the layers. */
void fs_kind_write_directions(struct fs_sink *sink, const struct fs_tree *tree, const char *label);

/* Projectors: images, sound. */
void fs_kind_write_encoders(struct fs_sink *sink, const struct fs_tree *tree, const char *label);

/* Diffusion models: the numbers of blocks, and what the file holds besides them. */
void fs_kind_write_blocks(struct fs_sink *sink, const struct fs_tree *tree, const char *label);
void fs_kind_write_parts(struct fs_sink *sink, const struct fs_tree *tree, const char *label);

/* Draft models: the number of tokens that they choose from. */
void fs_kind_write_draft_vocabulary(struct fs_sink *sink, const struct fs_tree *tree,
                                    const char *label);

#endif
