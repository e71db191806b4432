/*
 * Checks that layers have all required tensors: transformers fills weights that a checkpoint lacks
 * with random numbers.
 */
#pragma once

#include "fs/tree/hf/hf_model.h"
#include "fs/tree/hf/hf_rows.h"
#include "gguf/support/arrays.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The tensors that each layer has, counted by rule and suffix. */
struct fs_hf_presence {
    const struct fs_hf_model *hf;
    const struct fs_hf_row *row;
    uint64_t n_layer; /* at most GGUF_MAX_LAYERS */
    uint64_t n_all;   /* the key block_count: n_layer, and layers that predict further tokens */
    size_t n_rules;
    uint32_t *counts;
};

/* Returns 0 or -ENOMEM. Call fs_hf_presence_end() in any case. */
int fs_hf_presence_begin(struct fs_hf_presence *presence, const struct fs_hf_model *hf,
                         const struct fs_hf_row *row, uint64_t n_layer);
void fs_hf_presence_end(struct fs_hf_presence *presence);

/* Count a tensor that matches rule `index` of the row, of a layer below n_layer. */
void fs_hf_presence_add(struct fs_hf_presence *presence, size_t index,
                        const struct gguf_name_match *match);

/*
 * Add a line for each key in use whose value has another type than its values have, for example an
 * array in place of a number. Returns 0 or -ENOMEM.
 */
int fs_hf_check_types(const struct fs_hf_model *hf, const struct fs_hf_row *row,
                      struct gguf_buffer *obstacles);

/* Return true if the slowest dimension of tensors of this name counts experts. */
bool fs_hf_counts_experts(struct gguf_string name);

/* Add a line if the number of experts of the tensor is not the value of the key expert_count. */
int fs_hf_check_experts(const struct fs_hf_model *hf, const struct gguf_tensor *tensor,
                        uint32_t layer, struct gguf_buffer *obstacles);

/* Add a line for everything that is missing. Returns 0 or -ENOMEM. */
int fs_hf_check_needs(const struct fs_hf_presence *presence, struct gguf_buffer *obstacles);
