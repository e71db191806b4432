/*
 * hf/, a checkpoint for Hugging Face's transformers: config.json, generation_config.json and the
 * weights in safetensors files. A model has it if a row of hf_rows.h fits, and its tensors and keys
 * fit the row; else it has hf.unsupported.txt, which says why not.
 */
#pragma once

#include "fs/tree/hf/hf_rope.h"
#include "fs/tree/hf/hf_tensors.h"
#include "fs/tree/core/view_row.h"

#include <stdbool.h>

/* The size above which weights are divided into shards, unless -o hf_shard says another. */
#define FS_HF_SHARD_BYTES ((uint64_t)5000000000)

/* A file of weights: the consecutive tensors from `first` to `end`. */
struct fs_hf_shard {
    uint32_t index;
    size_t first, end;
    uint64_t data_bytes;
};

struct fs_hf_checkpoint {
    struct fs_hf_model hf;
    const struct fs_hf_row *row; /* NULL: no row fits, and the model has no checkpoint */
    struct fs_hf_tensors tensors;
    struct fs_hf_shard *shards;
    uint32_t n_shards;
    uint64_t data_bytes;
    struct fs_hf_all_factors factors;
    uint64_t config_bytes;        /* blanks fill config.json up to this size; 0: it has none */
    struct fs_hf_lines unused;    /* names of tensors that the row does not use, one per line */
    struct fs_hf_lines obstacles; /* lines; empty if hf/ exists */
};

/*
 * Plan the checkpoint of a tree, with shards of up to shard_bytes of data; 0: FS_HF_SHARD_BYTES.
 * `made` must be &tree->facts->hf. Free *made with fs_hf_free(), also on failure. Returns 0 or a
 * negative errno.
 */
int fs_hf_make(const struct fs_tree *tree, uint64_t shard_bytes, struct fs_hf_checkpoint **made);
void fs_hf_free(struct fs_hf_checkpoint *checkpoint);

/* Write the file name of a shard and a suffix: "model.safetensors" if it is the only one. */
void fs_hf_shard_name(const struct fs_hf_checkpoint *checkpoint, const struct fs_hf_shard *shard,
                      const char *suffix, char name[FS_NAME_BYTES]);

/* For the views: whether the model has these files, and their contents. */
fs_view_condition fs_hf_is_supported;
fs_view_condition fs_hf_is_incomplete;
fs_view_condition fs_hf_has_unused;
fs_view_condition fs_hf_has_index;
fs_text_writer fs_hf_config_write;
fs_text_writer fs_hf_generation_config_write;
fs_text_writer fs_hf_index_write;
fs_text_writer fs_hf_unused_write;
fs_text_writer fs_hf_unsupported_write;
fs_view_builder fs_hf_weights_build;
