/* The feed-forward part of a layer: a dense network, a mixture of experts, or both. */
#pragma once

#include "contrib/runner/engine/experts.h"
#include "contrib/runner/engine/rwkv_parts.h"

/*
 * The feed-forward part of RWKV: value(max(key(x'), 0)²), where x' is interpolated between the
 * token and the one before it. Versions before 7 multiply it by sigmoid(receptance(x'')).
 */
struct run_channel_mix {
    bool is_there;
    float *last;                              /* [n_embd]: the token before the first */
    const float *key_lerp, *receptance_lerp;  /* [n_embd] */
    struct run_linear key, value, receptance; /* the last may be empty */
};

struct run_feed_forward {
    bool is_there; /* false in layers without feed-forward */
    bool has_experts;
    struct run_ffn network; /* dense, or the shared experts beside a mixture; may be empty */
    struct run_norm_layer network_post_norm;
    struct run_linear shared_gate; /* [n_embd] to 1, or empty: its sigmoid multiplies the output of
                                      the shared experts */
    struct run_experts experts;
    struct run_channel_mix channel_mix; /* RWKV's feed-forward, instead of all others */
};

void run_feed_forward_load(struct run_loader *loader, const struct run_hparams *hparams,
                           const struct gguf_layer_shape *shape, struct run_feed_forward *layer);

/* out = feed-forward, [n][n_embd]. */
void run_feed_forward_apply(const struct run_feed_forward *layer, const struct run_pass *pass,
                            const struct run_feed_forward_input *in, float *out);
