/* Splits a model into several files, as llama.cpp's gguf-split does. */
#pragma once

#include "fs/tree/facts/export.h"
#include "fs/tree/core/names.h"

/* One of the shards into which a model is split. The first has all metadata. */
struct fs_shard {
    uint32_t index; /* from 0 */
    uint32_t count;
    uint64_t first_tensor; /* index in the GGUF file */
    uint64_t n_tensors;
};

/* How a model is split. All zero: not. */
struct fs_split {
    uint64_t limit_bytes; /* of tensor data per shard; a shard has at least one tensor */
    uint32_t count;       /* of shards, of about equal size; 0: as limit_bytes says */
    /* The tensors below this size that come first have a shard of their own, the first one. */
    uint64_t small_bytes;
};

/*
 * Divide the tensors into shards, in order. Free *shards with free(). Returns 0, -ENOMEM,
 * -EOVERFLOW, or -E2BIG if there are too many shards.
 */
int fs_split_plan(const struct gguf_model *model, enum fs_export_choice choice,
                  const struct fs_split *split, struct fs_shard **shards, uint32_t *n_shards);

/* Write the file name, "model-00001-of-00003.gguf" where `ending` is ".gguf". */
void fs_split_name(const struct gguf_model *model, const struct fs_shard *shard, const char *ending,
                   char name[FS_NAME_BYTES]);
