#include "fs/tree/kept_statistics.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

/* A tensor has one place, which it shares with every N_PLACES-th other; 3 MB in all. */
#define N_PLACES 4096u

struct entry {
    const struct gguf_tensor *tensor;
    unsigned generation; /* of the model, before the statistics were computed */
    struct fs_statistics statistics;
};

struct fs_kept_statistics {
    const struct gguf_model *model;
    pthread_mutex_t lock; /* protects the entries */
    struct entry *entries[N_PLACES];
};

struct fs_kept_statistics *fs_kept_statistics_make(const struct gguf_model *model)
{
    struct fs_kept_statistics *kept = calloc(1, sizeof *kept);

    if (kept) {
        kept->model = model;
        pthread_mutex_init(&kept->lock, NULL);
    }
    return kept;
}

void fs_kept_statistics_free(struct fs_kept_statistics *kept)
{
    if (!kept)
        return;
    for (size_t i = 0; i < N_PLACES; i++)
        free(kept->entries[i]);
    pthread_mutex_destroy(&kept->lock);
    free(kept);
}

int fs_kept_statistics_get(struct fs_kept_statistics *kept, const struct gguf_tensor *tensor,
                           const struct fs_interrupt *interrupt, struct fs_statistics *statistics)
{
    const struct gguf_source *file = &kept->model->files[tensor->file_index];
    struct entry **place = &kept->entries[(size_t)(tensor - kept->model->tensors) % N_PLACES];
    struct entry *made;
    unsigned generation;
    bool is_kept;
    int result;

    if (file->is_growing)
        return fs_statistics_compute(kept->model, tensor, interrupt, statistics);
    result = gguf_source_check(file, 0);
    if (result < 0)
        return result;
    generation = gguf_model_generation(kept->model);
    pthread_mutex_lock(&kept->lock);
    is_kept = *place && (*place)->tensor == tensor && (*place)->generation == generation;
    if (is_kept)
        *statistics = (*place)->statistics;
    pthread_mutex_unlock(&kept->lock);
    if (is_kept)
        return 0;
    result = fs_statistics_compute(kept->model, tensor, interrupt, statistics);
    made = result == 0 ? malloc(sizeof *made) : NULL;
    if (!made) /* without memory, they are computed again next time */
        return result;
    *made = (struct entry){tensor, generation, *statistics};
    pthread_mutex_lock(&kept->lock);
    free(*place);
    *place = made;
    pthread_mutex_unlock(&kept->lock);
    return 0;
}
