/* The lines of summary.txt that depend on the kind of file. */
#ifndef GGUFS_FS_KIND_LINES_H
#define GGUFS_FS_KIND_LINES_H

#include "fs/tree/output/sink.h"
#include "gguf/models/kinds.h"

struct fs_tree;

/* Return the kind of the tree's model. */
struct gguf_kind_found fs_kind_find(const struct fs_tree *tree);

/* Write the line about the kind itself. */
void fs_kind_write(struct fs_sink *sink, const struct gguf_kind_found *found);

/* Write the lines of the kind. */
void fs_kind_lines_write(struct fs_sink *sink, const struct fs_tree *tree,
                         const struct gguf_kind *kind);

#endif
