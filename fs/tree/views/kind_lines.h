/* The part of a summary that depends on the kind of file. */
#pragma once

#include "fs/tree/views/summary_values.h"
#include "gguf/models/kinds.h"

/* Return the kind of the tree's model. */
struct gguf_kind_found fs_kind_find(const struct fs_tree *tree);

/* Write the line about the kind itself. */
void fs_kind_write(const struct fs_summary *summary, const struct gguf_kind_found *found);

/*
 * Write what the model has of the facts that people ask of some kind. In JSON, a key's value has
 * its name, without the architecture.
 */
void fs_kind_lines_write(const struct fs_summary *summary, enum gguf_kind_id kind);
