/*
 * The feed-forward part of a layer: one network for all tokens, or experts of which each token gets
 * some (Shazeer et al. 2017), or both.
 */
#ifndef GGUFS_RUNNER_FEED_FORWARD_H
#define GGUFS_RUNNER_FEED_FORWARD_H

#include "contrib/runner/engine/channel_mix.h"
#include "contrib/runner/engine/loader.h"
#include "contrib/runner/engine/pass.h"

/* down(f(gate(x)) · up(x)), or down(f(up(x))) without gate. With experts these hold all of theirs.
 */
struct run_network {
    uint64_t n_ff;
    struct run_linear gate, up, down;
    struct run_linear gate_up; /* both in one, the gate's rows first; then these two are empty */
    struct run_norm_layer sub_norm; /* before `down` */
    enum run_activation activation;
    const struct run_xielu *xielu;
};

struct run_experts {
    struct run_linear router; /* [n_embd] to a score for each expert */
    const float *selection;   /* [n]: added to the probabilities to choose experts; or NULL */
    struct run_linear narrow, widen; /* [n_embd] to `width` and back, around the networks; or empty
                                      */
    size_t width;                    /* of what networks take and give: else n_embd */
    struct run_network networks;
};

struct run_feed_forward {
    bool is_there; /* some layers have none */
    bool has_experts;
    struct run_network network;    /* of all tokens; beside experts the shared ones. May be empty */
    struct run_linear shared_gate; /* [n_embd] to 1: sigmoid weighs the shared experts; or empty */
    struct run_experts experts;
    struct run_channel_mix channel_mix; /* RWKV's, in the place of all others */
};

void run_feed_forward_load(struct run_loader *loader, const struct run_hparams *hparams,
                           const struct run_layer_shape *shape, struct run_feed_forward *layer);

/* Forgets all earlier tokens. */
void run_feed_forward_reset(const struct run_feed_forward *layer);

/* out = feed-forward of x, both [n][n_embd]. Returns 0 or -ENOMEM. */
int run_feed_forward_apply(const struct run_feed_forward *layer, const struct run_pass *pass,
                           const float *x, float *out);

/* One network on n rows; `matrix` is which expert's. For feed_forward.c and experts.c. */
int run_network_apply(const struct run_network *network, const struct run_pass *pass,
                      uint64_t matrix, const float *x, size_t n, float *out);

/* The experts' sum for every token. */
void run_experts_load(struct run_loader *loader, const struct run_hparams *hparams,
                      struct run_experts *experts);
int run_experts_apply(const struct run_experts *experts, const struct run_pass *pass,
                      const float *x, float *out);

#endif
