/*
 * The model as a little-endian GGUF file of version 3, whatever its source's format: the images of
 * model.gguf and of the files in split/.
 */
#ifndef GGUFS_FS_MODEL_GGUF_H
#define GGUFS_FS_MODEL_GGUF_H

#include "fs/tree/core/view_row.h"
#include "fs/tree/core/interrupt.h"
#include "gguf/model.h"

#include <stdbool.h>
#include <stdint.h>

struct fs_tree;

/* Return the reason why the model cannot be written as a GGUF file, in a few words, or NULL. */
const char *fs_model_gguf_obstacle(const struct gguf_model *model);

/* Return true if the model can be written as a GGUF file. Used by the table of views. */
bool fs_model_gguf_applies(const struct fs_tree *tree, const void *subject);

/* Build the whole file, or one shard: `subject` is a struct fs_shard or NULL. */
int fs_model_gguf_build(const struct fs_tree *tree, const void *subject,
                        const struct fs_interrupt *interrupt, struct fs_image *image);

#endif
