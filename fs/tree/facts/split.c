#include "fs/tree/facts/split.h"

#include "gguf/support/arrays.h"
#include "gguf/support/shard_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Append a shard that starts with a tensor. */
static int begin_shard(struct fs_shard **shards, size_t *room, uint32_t *n_shards,
                       uint64_t first_tensor)
{
    const uint32_t n = *n_shards;

    if (n == GGUF_MAX_SHARDS)
        return -E2BIG;
    if (gguf_reserve(shards, room, (size_t)n + 1, sizeof **shards) < 0)
        return -ENOMEM;
    (*shards)[n] = (struct fs_shard){.index = n, .first_tensor = first_tensor};
    *n_shards = n + 1;
    return 0;
}

/* Find the bytes that a tensor takes in a file. */
static int find_bytes(const struct gguf_model *model, enum fs_export_choice choice, uint64_t index,
                      uint64_t *n_bytes)
{
    const uint64_t mask = model->alignment_bytes - 1;
    const int result = fs_export_bytes(choice, &model->tensors[index], n_bytes);

    if (result < 0 || __builtin_add_overflow(*n_bytes, -*n_bytes & mask, n_bytes))
        return -EOVERFLOW;
    return 0;
}

/* Where the division stands. */
struct progress {
    uint64_t shard_bytes, done_bytes, total_bytes;
    uint64_t n_left; /* tensors, with the next one */
    bool is_small;   /* the shard has the small tensors */
};

/* Return true if a shard begins with the next tensor; the current one, number `n`, has some. */
static bool is_next(const struct fs_split *split, const struct progress *at, uint32_t n,
                    uint64_t n_bytes)
{
    uint64_t sum;

    if (at->is_small)
        return n_bytes >= split->small_bytes;
    if (split->count > 0)
        return n < split->count &&
               (at->n_left <= split->count - n ||
                (double)at->done_bytes >= (double)at->total_bytes * n / split->count);
    return __builtin_add_overflow(at->shard_bytes, n_bytes, &sum) || sum > split->limit_bytes;
}

int fs_split_plan(const struct gguf_model *model, enum fs_export_choice choice,
                  const struct fs_split *split, struct fs_shard **shards, uint32_t *n_shards)
{
    struct progress at = {.n_left = model->n_tensors, .is_small = split->small_bytes > 0};
    size_t room = 0;
    uint64_t n_bytes;
    int result;

    *shards = NULL;
    *n_shards = 0;
    result = begin_shard(shards, &room, n_shards, 0);
    for (uint64_t i = 0; result == 0 && i < at.n_left; i++) {
        result = find_bytes(model, choice, i, &n_bytes);
        if (result == 0 && __builtin_add_overflow(at.total_bytes, n_bytes, &at.total_bytes))
            result = -EOVERFLOW;
    }
    for (uint64_t i = 0; result == 0 && at.n_left > 0; i++, at.n_left--) {
        result = find_bytes(model, choice, i, &n_bytes);
        if (i == 0)
            at.is_small &= n_bytes < split->small_bytes;
        if (result == 0 && (*shards)[*n_shards - 1].n_tensors > 0 &&
            is_next(split, &at, *n_shards, n_bytes)) {
            result = begin_shard(shards, &room, n_shards, i);
            at.shard_bytes = 0;
            at.is_small = false;
        }
        at.shard_bytes += n_bytes;
        at.done_bytes += n_bytes;
        if (result == 0)
            (*shards)[*n_shards - 1].n_tensors++;
    }
    for (uint32_t i = 0; i < *n_shards; i++)
        (*shards)[i].count = *n_shards;
    if (result < 0) {
        free(*shards);
        *shards = NULL;
    }
    return result;
}

void fs_split_name(const struct gguf_model *model, const struct fs_shard *shard, const char *ending,
                   char name[FS_NAME_BYTES])
{
    const char *path = model->files[0].source.path, *file_name = strrchr(path, '/') + 1;
    const struct gguf_string stem = {file_name, gguf_stem_bytes(file_name)};
    char suffix[64];

    snprintf(suffix, sizeof suffix, GGUF_SHARD_NUMBERS "%s", shard->index + 1, shard->count,
             ending);
    fs_name_escape(stem, suffix, name);
}
