/*
 * safetensors files: the header of any, and model.safetensors, which has all tensors under their
 * GGUF names. The format: https://github.com/huggingface/safetensors#format
 */
#ifndef GGUFS_FS_SAFETENSORS_H
#define GGUFS_FS_SAFETENSORS_H

#include "fs/tree/core/view_row.h"
#include "fs/tree/core/interrupt.h"
#include "fs/tree/core/text.h"
#include "gguf/model.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Return the reason why the model cannot be written as a safetensors file, in a few words, or NULL.
 */
const char *fs_safetensors_obstacle(const struct fs_tree *tree);

/* Return true if the model can be written as a safetensors file. Used by the table of views. */
bool fs_safetensors_applies(const struct fs_tree *tree, const void *subject);

int fs_safetensors_build(const struct fs_tree *tree, const void *subject,
                         const struct fs_interrupt *interrupt, struct fs_image *image);

#endif
