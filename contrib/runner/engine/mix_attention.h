/* The attention of a layer: projections, norms and rotation around compute/attend.h. */
#pragma once

#include "contrib/runner/engine/indexer.h"
#include "contrib/runner/engine/mixer.h"

/* A norm of queries, keys or values. */
struct run_head_norm {
    struct run_norm_layer norm; /* of a head, or of all heads of a token together */
    bool is_of_row;
};

struct run_attention_layer {
    const struct gguf_layer_shape *shape;
    struct run_attention attention;
    struct run_linear qkv; /* [n_embd] to queries, keys and values, or … */
    struct run_linear q, k,
        v;          /* … separately; without v, values are the keys before norm and rotation */
    bool has_gates; /* q has twice the rows: after each head's queries its gates, whose sigmoid
                       multiplies the head's result */
    struct run_linear
        gate; /* [n_embd] to a gate for each head's result or each element of it, or empty */
    struct run_linear output; /* [n_head · dim_v] to [n_embd] */
    struct run_head_norm q_norm, k_norm, v_norm;
    struct run_norm_layer sub_norm;           /* before `output` */
    struct run_indexer indexer;               /* attention is sparse unless it is empty */
    struct run_cache keys, values;            /* empty if an earlier layer's are used */
    const struct run_attention_layer *source; /* the layer whose keys and values are used */
};

extern const struct run_mixer_ops run_attention_mixer;

/* Make a cache for `width` elements of a token, in heads of `dim`. */
void run_attention_cache(struct run_loader *loader, const struct run_mixer_place *place,
                         uint64_t width, uint32_t dim, struct run_cache *cache);

/*
 * Multiply the queries q, [n][width], by a factor that grows with their position, if the
 * architecture does so in this layer; see temperature_scale in struct run_hparams.
 */
void run_scale_queries_by_position(const struct run_pass *pass,
                                   const struct gguf_layer_shape *shape, float *q, size_t width);
