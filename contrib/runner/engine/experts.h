/*
 * Mixture of experts (Shazeer et al. 2017): a router selects the top-k experts per token.
 */
#pragma once

#include "contrib/runner/engine/ffn.h"

struct run_experts {
    struct run_linear router;        /* [n_embd] to a score for each expert */
    const float *router_scale;       /* [n_embd]: multiplies the router's input, which then is the
                                        RMS-normalized residual divided by √n_embd; or NULL */
    struct run_norm_layer norm;      /* of the experts alone; the shared network has another one */
    struct run_norm_layer post_norm; /* of the sum of the experts */
    const float *selection_bias; /* [n], or NULL: added to the probabilities for choosing experts */
    struct run_linear narrow,
        widen;    /* [n_embd] to `width` before the networks and back after them, or empty */
    size_t width; /* of the networks' input and output: n_embd without `narrow` */
    struct run_ffn networks;
    struct run_ffn chunks; /* one for each group of neighbouring experts, applied to their
                                  output (Grove MoE's adjugate experts); or empty */
};

/* The inputs that a feed-forward may take, [n][n_embd] each. */
struct run_feed_forward_input {
    const float *normed;   /* the residual, normalized */
    const float *residual; /* the residual after attention */
    const float *layer;    /* the layer's input; valid only for rows with RUN_…_INPUT */
};

void run_experts_load(struct run_loader *loader, const struct run_hparams *hparams,
                      const struct gguf_layer_shape *shape, struct run_experts *experts);

/* out = the weighted sum of each token's experts, [n][n_embd]. */
void run_experts_apply(const struct run_experts *experts, const struct run_pass *pass,
                       const struct run_feed_forward_input *in, float *out);
