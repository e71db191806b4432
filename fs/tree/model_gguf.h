/*
 * The model as a little-endian GGUF file of version 3, whatever its source's format: the images of
 * model.gguf and of the files in split/.
 */
#ifndef GGUFS_FS_MODEL_GGUF_H
#define GGUFS_FS_MODEL_GGUF_H

#include "fs/tree/export.h"
#include "fs/tree/image.h"
#include "fs/tree/interrupt.h"
#include "gguf/model.h"

#include <stdbool.h>
#include <stdint.h>

struct fs_tree;

/* One of the shards into which a model is split. The first has all metadata. */
struct fs_shard {
    uint32_t index; /* from 0 */
    uint32_t count;
    uint64_t first_tensor; /* of those in the GGUF file */
    uint64_t n_tensors;
};

/* Return the reason why the model cannot be written as a GGUF file, in a few words, or NULL. */
const char *fs_model_gguf_obstacle(const struct gguf_model *model);

/* Return true if there is no such reason. Used by the table of views. */
bool fs_model_gguf_applies(const struct fs_tree *tree, const void *subject);

/* Build the whole file, or one shard: `subject` is a struct fs_shard or NULL. */
int fs_model_gguf_build(const struct fs_tree *tree, const void *subject,
                        const struct fs_interrupt *interrupt, struct fs_image *image);

/* Get the size of a tensor's data in the file, in bytes. Returns 0 or -EOVERFLOW. */
int fs_model_gguf_bytes(const struct gguf_model *model, enum fs_export_choice choice,
                        uint64_t index, uint64_t *n_bytes);

#endif
