/*
 * Lines of summary.txt about the tensors of files other than language models. Each function writes
 * one labelled line, or nothing if it does not apply.
 */
#ifndef GGUFS_FS_KIND_TENSORS_H
#define GGUFS_FS_KIND_TENSORS_H

#include "fs/tree/output/sink.h"

struct fs_tree;

/* Low-rank adapters: the rank, alpha with the scale that follows, and the tensors they change. */
void fs_kind_write_rank(struct fs_sink *sink, const struct fs_tree *tree, const char *label);
void fs_kind_write_alpha(struct fs_sink *sink, const struct fs_tree *tree, const char *label);
void fs_kind_write_targets(struct fs_sink *sink, const struct fs_tree *tree, const char *label);

/* Importance matrices: the number of usable and of unusable tensors. */
void fs_kind_write_importance(struct fs_sink *sink, const struct fs_tree *tree, const char *label);

/* Control vectors: the layers. */
void fs_kind_write_directions(struct fs_sink *sink, const struct fs_tree *tree, const char *label);

/* Projectors: images, sound. */
void fs_kind_write_encoders(struct fs_sink *sink, const struct fs_tree *tree, const char *label);

#endif
