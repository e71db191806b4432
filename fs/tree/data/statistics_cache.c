#include "fs/tree/data/statistics_cache.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

/* The entry of tensor i is i % N_ENTRIES. */
#define N_ENTRIES 4096u

struct entry {
    const struct gguf_tensor *tensor;
    unsigned generation; /* of the model, before the statistics were computed */
    struct fs_statistics statistics;
};

struct fs_statistics_cache {
    const struct gguf_model *model;
    pthread_mutex_t lock; /* protects the entries */
    struct entry *entries[N_ENTRIES];
};

struct fs_statistics_cache *fs_statistics_cache_make(const struct gguf_model *model)
{
    struct fs_statistics_cache *cache = calloc(1, sizeof *cache);

    if (cache) {
        cache->model = model;
        pthread_mutex_init(&cache->lock, NULL);
    }
    return cache;
}

void fs_statistics_cache_free(struct fs_statistics_cache *cache)
{
    if (!cache)
        return;
    for (size_t i = 0; i < N_ENTRIES; i++)
        free(cache->entries[i]);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

int fs_statistics_cache_get(struct fs_statistics_cache *cache, const struct gguf_tensor *tensor,
                            const struct fs_interrupt *interrupt, struct fs_statistics *statistics)
{
    const struct gguf_file *file = &cache->model->files[tensor->file_index];
    struct entry **place = &cache->entries[(size_t)(tensor - cache->model->tensors) % N_ENTRIES];
    struct entry *made;
    unsigned generation;
    bool is_kept;
    int result;

    if (file->source.is_growing)
        return fs_statistics_compute(cache->model, tensor, interrupt, statistics);
    result = gguf_file_check(file, 0);
    if (result < 0)
        return result;
    generation = gguf_model_generation(cache->model);
    pthread_mutex_lock(&cache->lock);
    is_kept = *place && (*place)->tensor == tensor && (*place)->generation == generation;
    if (is_kept)
        *statistics = (*place)->statistics;
    pthread_mutex_unlock(&cache->lock);
    if (is_kept)
        return 0;
    result = fs_statistics_compute(cache->model, tensor, interrupt, statistics);
    made = result == 0 ? malloc(sizeof *made) : NULL;
    if (!made) /* without memory, they are computed again next time */
        return result;
    *made = (struct entry){tensor, generation, *statistics};
    pthread_mutex_lock(&cache->lock);
    free(*place);
    *place = made;
    pthread_mutex_unlock(&cache->lock);
    return 0;
}
