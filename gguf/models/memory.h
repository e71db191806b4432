/* Memory that running a model takes: weights by role, keys and values, states. */
#pragma once

#include "gguf/models/layer_shapes.h"
#include "gguf/support/cache_rows.h"
#include "gguf/support/strings.h"

/* The purposes of weights. */
enum gguf_role {
    GGUF_ROLE_ATTENTION, /* and recurrences: all that mixes tokens */
    GGUF_ROLE_FEED_FORWARD,
    GGUF_ROLE_EXPERTS, /* without routers and shared experts */
    GGUF_ROLE_EMBEDDINGS,
    GGUF_ROLE_OUTPUT,
    GGUF_ROLE_OTHER,
    GGUF_N_ROLES,
};

/* Return the role of a tensor of a language model by its name in GGUF. */
enum gguf_role gguf_role_of(struct gguf_string name);

/*
 * Return the bytes that one token needs of a tensor of n_bytes: of embeddings a row, unless the
 * output uses token_embd as well (`is_tied`), of experts n_used of them, else all. `ne` has the
 * dimensions; the last one above 1 counts rows or experts.
 */
uint64_t gguf_token_bytes(struct gguf_string name, bool is_tied, uint64_t n_bytes,
                          const uint64_t ne[], uint32_t n_dims, uint32_t n_used);

/* The state that a layer keeps of earlier tokens. */
struct gguf_layer_memory {
    uint64_t width_k, width_v; /* elements of a token's keys and values; 0: none of its own */
    uint64_t head_k, head_v;   /* of a head: a multiple of the cache type's block, or the type is
                                  F16 instead */
    uint32_t window;           /* tokens; 0: all */
    uint64_t indexer_width;    /* F32 elements of a token's key of the indexer */
    uint64_t n_state;          /* F32 elements, however many tokens there are */
};

/*
 * Return the memory of layer `index`, whose shape is `layer`. Sizes of recurrent states come from
 * the shapes of tensors. Numbers that do not fit together give 0.
 */
struct gguf_layer_memory gguf_layer_memory_of(const struct gguf_shape_keys *keys,
                                              const struct gguf_shapes *all,
                                              const struct gguf_layer_shape *layer, uint32_t index);
