/*
 * The texts of a model's values, each found once somebody has asked for it. Any thread may ask.
 */
#ifndef GGUFS_FS_VALUE_CACHE_H
#define GGUFS_FS_VALUE_CACHE_H

#include "fs/value_text.h"
#include "gguf/model.h"

struct fs_value_cache {
    const struct gguf_model *model; /* not owned */
    /* By key: NULL, then its text for good. */
    _Atomic(struct fs_value_text *) *texts;
};

/* Returns 0, or -ENOMEM; fs_value_cache_free() is to be called anyway. */
int fs_value_cache_begin(struct fs_value_cache *cache, const struct gguf_model *model);
void fs_value_cache_free(struct fs_value_cache *cache);

/* The text of a key's value, which the cache owns. Returns 0, -ENOMEM or -EIO. */
int fs_value_cache_get(struct fs_value_cache *cache, const struct gguf_key *key,
                       const struct fs_value_text **text);

#endif
