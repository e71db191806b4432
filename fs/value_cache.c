#include "fs/value_cache.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

int fs_value_cache_begin(struct fs_value_cache *cache, const struct gguf_model *model)
{
    cache->model = model;
    cache->texts = calloc(model->n_keys + 1, sizeof *cache->texts);
    return cache->texts ? 0 : -ENOMEM;
}

void fs_value_cache_free(struct fs_value_cache *cache)
{
    for (uint64_t i = 0; cache->texts && i < cache->model->n_keys; i++)
        fs_value_text_free(atomic_load(&cache->texts[i]));
    free(cache->texts);
}

int fs_value_cache_get(struct fs_value_cache *cache, const struct gguf_key *key,
                       const struct fs_value_text **text)
{
    _Atomic(struct fs_value_text *) *slot = &cache->texts[key - cache->model->keys];
    struct fs_value_text *there = atomic_load_explicit(slot, memory_order_acquire);
    struct fs_value_text *made;
    int result;

    if (!there) {
        result = fs_value_text_make(&key->value, &cache->model->files[0], &made);
        if (result < 0)
            return result;
        /* Whoever comes first; both have made the same. */
        if (atomic_compare_exchange_strong(slot, &there, made))
            there = made;
        else
            fs_value_text_free(made);
    }
    *text = there;
    return 0;
}
