#include "fs/value_cache.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

int fs_value_cache_begin(struct fs_value_cache *cache, const struct gguf_model *model)
{
    cache->model = model;
    pthread_mutex_init(&cache->lock, NULL);
    cache->texts = calloc(model->n_keys + 1, sizeof *cache->texts);
    return cache->texts ? 0 : -ENOMEM;
}

void fs_value_cache_free(struct fs_value_cache *cache)
{
    for (uint64_t i = 0; cache->texts && i < cache->model->n_keys; i++)
        fs_value_text_free(atomic_load(&cache->texts[i]));
    free(cache->texts);
    pthread_mutex_destroy(&cache->lock);
}

int fs_value_cache_get(struct fs_value_cache *cache, const struct gguf_key *key,
                       const struct fs_value_text **text)
{
    _Atomic(struct fs_value_text *) *slot = &cache->texts[key - cache->model->keys];
    struct fs_value_text *made = atomic_load_explicit(slot, memory_order_acquire);
    int result = 0;

    if (!made) {
        pthread_mutex_lock(&cache->lock);
        made = atomic_load_explicit(slot, memory_order_relaxed);
        if (!made) {
            result = fs_value_text_make(&key->value, &made);
            atomic_store_explicit(slot, made, memory_order_release);
        }
        pthread_mutex_unlock(&cache->lock);
    }
    *text = made;
    return result;
}
