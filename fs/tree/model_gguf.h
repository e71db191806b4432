/*
 * The model as a GGUF file of version 3 in little-endian order, whatever it came from: the image of
 * model.gguf and of the files in split/.
 */
#ifndef GGUFS_FS_MODEL_GGUF_H
#define GGUFS_FS_MODEL_GGUF_H

#include "fs/tree/image.h"
#include "fs/tree/value_cache.h"
#include "gguf/model.h"

#include <stdbool.h>
#include <stdint.h>

/* One of the files over which a model is split. The first holds all metadata. */
struct fs_shard {
    uint32_t index; /* from 0 */
    uint32_t count;
    uint64_t first_tensor;
    uint64_t n_tensors;
};

/*
 * Why the model can't be had so, to follow a word like "because"; NULL if it can: nobody knows, or
 * not yet, how some of its bytes would have to be written.
 */
const char *fs_model_gguf_obstacle(const struct gguf_model *model);

/* Whether there is none, for the table of views. `subject` does not matter. */
bool fs_model_gguf_applies(const struct gguf_model *model, const void *subject);

/* Adds the file, or the part of it that `subject` says, a struct fs_shard or NULL. */
int fs_model_gguf_build(struct fs_image *image, const void *subject, struct fs_value_cache *values);

/* The bytes of a tensor's data in the file. Returns 0 or -EOVERFLOW. */
int fs_model_gguf_bytes(const struct gguf_tensor *tensor, uint64_t *n_bytes);

#endif
