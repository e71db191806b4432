/* The memory that it takes to run a language model: arithmetic from its keys and tensors. */
#pragma once

#include "fs/tree/views/summary_values.h"
#include "gguf/models/memory.h"

/* Sums saturate at UINT64_MAX. */
struct fs_layer_memory {
    uint64_t weight_bytes, expert_bytes; /* all, and the experts' */
    uint64_t cache_bytes, state_bytes;   /* keys and values; states of recurrences */
    uint64_t rest_bytes; /* all of this layer, of the layers after it, and of the output */
};

struct fs_memory {
    uint32_t n_context; /* tokens in the cache */
    const struct dequant_type *cache_type;
    bool has_narrow_heads; /* some keep F16, since their width is not a number of blocks */
    uint64_t role_bytes[GGUF_N_ROLES]; /* of weights */
    uint64_t weight_bytes, cache_bytes, state_bytes;
    uint64_t token_bytes;       /* of the weights that one token needs */
    uint64_t token_cache_bytes; /* of the keys, values and states that it reads after the others */
    struct fs_layer_memory *layers; /* NULL without layers */
    uint32_t n_layers;              /* with those that only predict further tokens */
};

/*
 * Compute the memory. Returns false if the architecture is unknown, a key is missing or there is
 * not enough memory. Free memory->layers.
 */
bool fs_memory_compute(const struct fs_tree *tree, const struct fs_cache_choice *choice,
                       struct fs_memory *memory);

/* Write the lines of a summary about it: weights, cache, memory, one token. */
void fs_memory_write(const struct fs_summary *summary);
