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
    struct fs_shard *grown;

    if (n == GGUF_MAX_SHARDS)
        return -E2BIG;
    grown = gguf_grow(*shards, room, (size_t)n + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    *shards = grown;
    (*shards)[n] = (struct fs_shard){.index = n, .first_tensor = first_tensor};
    *n_shards = n + 1;
    return 0;
}

int fs_split_plan(const struct gguf_model *model, enum fs_export_choice choice,
                  uint64_t limit_bytes, struct fs_shard **shards, uint32_t *n_shards)
{
    const uint64_t mask = model->alignment_bytes - 1, n_tensors = fs_export_count(model);
    uint64_t used_bytes = 0;
    size_t room = 0;
    int result;

    *shards = NULL;
    *n_shards = 0;
    result = begin_shard(shards, &room, n_shards, 0);
    for (uint64_t i = 0; result == 0 && i < n_tensors; i++) {
        uint64_t n_bytes, sum;

        result = fs_export_bytes(model, choice, i, &n_bytes);
        if (result < 0)
            break;
        if (__builtin_add_overflow(n_bytes, -n_bytes & mask, &n_bytes) ||
            __builtin_add_overflow(used_bytes, n_bytes, &sum)) {
            result = -EOVERFLOW;
            break;
        }
        if (sum > limit_bytes && (*shards)[*n_shards - 1].n_tensors > 0) {
            result = begin_shard(shards, &room, n_shards, i);
            sum = n_bytes;
        }
        used_bytes = sum;
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
