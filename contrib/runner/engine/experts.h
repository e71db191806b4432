/*
 * Networks of which each token gets some (Shazeer et al. 2017).
 */
#ifndef GGUFS_RUNNER_EXPERTS_H
#define GGUFS_RUNNER_EXPERTS_H

#include "contrib/runner/engine/network.h"

struct run_experts {
    struct run_linear router;   /* [n_embd] to a score for each expert */
    const float *router_scale;  /* [n_embd]: multiplies the router's input, which then is a norm of
                                   the residual over √n_embd; or NULL */
    struct run_norm_layer norm; /* of their own: the network beside them has another */
    struct run_norm_layer post_norm; /* of their sum */
    const float *selection; /* [n]: added to the probabilities to choose experts; or NULL */
    struct run_linear narrow, widen; /* [n_embd] to `width` and back, around the networks; or empty
                                      */
    size_t width;                    /* of what networks take and give: else n_embd */
    struct run_network networks;
    struct run_network chunks; /* one for each few neighbours among the experts, which gets what
                                  they give (Grove MoE); or empty */
};

/* What a feed-forward may start from, [n][n_embd] each. */
struct run_feed_forward_input {
    const float *normed;   /* by the norm before it */
    const float *residual; /* before that norm */
    const float *layer;    /* what the layer got; only for rows with experts_lead, router_leads */
};

void run_experts_load(struct run_loader *loader, const struct run_hparams *hparams,
                      const struct run_layer_shape *shape, struct run_experts *experts);

/* out = the experts' sum for every token, [n][n_embd]. Returns 0 or -ENOMEM. */
int run_experts_apply(const struct run_experts *experts, const struct run_pass *pass,
                      const struct run_feed_forward_input *in, float *out);

#endif
