/*
 * The texts of a model's values in each form, each found once somebody has asked for it. Any thread
 * may ask.
 */
#ifndef GGUFS_FS_VALUE_CACHE_H
#define GGUFS_FS_VALUE_CACHE_H

#include "fs/tree/image.h"
#include "fs/tree/value_text.h"
#include "gguf/model.h"

struct fs_value_cache {
    const struct gguf_model *model; /* not owned */
    /* By key and form: NULL, then its text for good. */
    _Atomic(struct fs_value_text *) (*texts)[FS_N_VALUE_FORMS];
};

/* Returns 0, or -ENOMEM; fs_value_cache_free() is to be called anyway. */
int fs_value_cache_begin(struct fs_value_cache *cache, const struct gguf_model *model);
void fs_value_cache_free(struct fs_value_cache *cache);

/* A key's value in a form, which the cache owns. Returns 0, -ENOMEM or -EIO. */
int fs_value_cache_get(struct fs_value_cache *cache, const struct gguf_key *key,
                       enum fs_value_form form, const struct fs_value_text **text);

/*
 * Adds a key's value to an image, which must not outlive the cache. Returns 0, -ENOMEM, -EIO or
 * -EOVERFLOW.
 */
int fs_value_cache_add(struct fs_value_cache *cache, const struct gguf_key *key,
                       enum fs_value_form form, struct fs_image *image);

#endif
