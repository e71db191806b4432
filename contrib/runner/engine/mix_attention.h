/*
 * The attention of a layer: products, norms and rotation around compute/attend.h.
 */
#ifndef GGUFS_RUNNER_MIX_ATTENTION_H
#define GGUFS_RUNNER_MIX_ATTENTION_H

#include "contrib/runner/engine/loader.h"
#include "contrib/runner/engine/pass.h"

/* A norm of queries or keys. */
struct run_head_norm {
    struct run_norm_layer norm; /* of a head, or of all heads of a token together */
    bool is_of_row;
};

struct run_attention_layer {
    const struct run_layer_shape *shape;
    struct run_attention attention;
    struct run_linear qkv;     /* [n_embd] to queries, keys and values, or … */
    struct run_linear q, k, v; /* … three */
    bool
        has_gates; /* behind each head's rows of q as many whose sigmoid multiplies what it finds */
    struct run_linear output; /* [n_head · dim_v] to [n_embd] */
    struct run_head_norm q_norm, k_norm;
    struct run_norm_layer sub_norm; /* before `output` */
    struct run_cache keys, values;
};

void run_attention_load(struct run_loader *loader, const struct run_hparams *hparams,
                        const struct run_layer_shape *shape, bool is_cache_f16,
                        struct run_attention_layer *layer);
void run_attention_free(struct run_attention_layer *layer);

/* out = attention of x, both [n][n_embd]. Returns 0 or -ENOMEM. */
int run_attention_apply(struct run_attention_layer *layer, const struct run_pass *pass,
                        const float *x, float *out);

#endif
