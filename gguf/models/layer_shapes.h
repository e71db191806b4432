/* The layers, as the keys of a model describe them. */
#pragma once

#include "gguf/models/models.h"

struct gguf_layer_shape {
    uint32_t n_head, n_head_kv; /* 0: no attention in this layer */
    uint32_t dim_k, dim_v;      /* of a head's keys and values */
    bool shares_kv; /* the layer has no keys and values of its own and uses kv_layer's */
    uint32_t kv_layer;
    bool is_windowed;
    bool has_indexer; /* else the layer uses the selection of the last layer with an indexer */

    /* Only for programs that run the model, which fill it in. */
    bool is_rotated;
    float sparsity;             /* of the gates of its feed-forward; 0: none */
    float clamp_experts, clamp; /* limits of activations; 0: none */
};

/* The model, and how its keys are read. */
struct gguf_shape_keys {
    const struct gguf_architecture *architecture;
    uint32_t n_layer;  /* without those that only predict further tokens */
    uint32_t n_shapes; /* with them */
    uint32_t n_stored; /* layers in the file: layer i has the heads of i % n_stored */
    uint32_t n_embd, n_context;
    /*
     * Store the value of a key, ".NAME" of the architecture, for a layer at *value, or its default;
     * without any, *value stays. With SIZE_MAX as `layer`, the key has one value for all layers.
     */
    void (*read)(void *user, const char *key, size_t layer, uint32_t most, uint32_t *value);
    bool (*is_array)(void *user, const char *key);
    /*
     * Get the elements of a tensor and of its rows. Returns false if the model lacks it. Only for
     * gguf_layer_memory_of().
     */
    bool (*find)(void *user, const char *name, uint64_t *n_elements, uint64_t *row_elements);
    void *user;
};

/* The shapes that all layers have in common. */
struct gguf_shapes {
    uint32_t n_head;       /* of the first layer with attention; 0: no layer has any */
    uint32_t dim_k, dim_v; /* of layers without a window */
    uint32_t window;       /* attention.sliding_window; 0: none */
};

/* Larger than in any known model. */
enum { GGUF_MAX_HEADS = 1 << 14, GGUF_MAX_HEAD_WIDTH = 1 << 16 };

/*
 * Fill in `layers`, of keys->n_shapes, and `all`. Returns NULL, or the rule that the values
 * violate.
 */
const char *gguf_layer_shapes_read(const struct gguf_shape_keys *keys,
                                   struct gguf_layer_shape *layers, struct gguf_shapes *all);
