/*
 * The table of views: one row for every kind of file in the tree, with the function that builds its
 * image. A new kind of file is a row here and a builder.
 */
#ifndef GGUFS_FS_VIEWS_H
#define GGUFS_FS_VIEWS_H

#include "fs/tree/image.h"
#include "fs/tree/value_cache.h"
#include "gguf/model.h"

#include <stdbool.h>
#include <stddef.h>

/* What there is one file for. */
enum fs_scope {
    FS_PER_MODEL,  /* in the root */
    FS_PER_KEY,    /* in metadata/; the row's name is what follows the key */
    FS_PER_TENSOR, /* in tensors/<name>/ */
    FS_PER_SHARD,  /* in split/; the row's name is what follows the number */
};

struct fs_view {
    enum fs_scope scope;
    const char *name;
    /* Whether the subject has this file; NULL if all have. Not for FS_PER_KEY. */
    bool (*applies)(const struct gguf_model *model, const void *subject);
    /*
     * Adds the segments to an image that was begun. `subject` is the struct gguf_key, gguf_tensor
     * or fs_shard, or NULL for the model. Returns 0 or a negative errno.
     */
    int (*build)(struct fs_image *image, const void *subject, struct fs_value_cache *values);
};

size_t fs_view_count(void);
const struct fs_view *fs_view_at(size_t index);

#endif
