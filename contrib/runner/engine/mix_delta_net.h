/* The gated delta net (Yang, Kautz and Hatamizadeh 2024) of Qwen3-Next and Qwen 3.5. */
#ifndef GGUFS_RUNNER_MIX_DELTA_NET_H
#define GGUFS_RUNNER_MIX_DELTA_NET_H

#include "contrib/runner/compute/delta_rule.h"
#include "contrib/runner/engine/mixer.h"
#include "contrib/runner/engine/recurrent_parts.h"

/* Added to the squared length of queries and keys before they are normalized. */
#define RUN_L2_EPSILON 1e-6f

/* Kept for a rewind: the memory before the last pass, and the inputs of its tokens. */
struct run_delta_net_kept {
    float *memory;    /* the rule's state, then the convolution's past */
    float *inputs;    /* of each token: qkv, beta, alpha */
    size_t n_room, n; /* tokens */
};

struct run_delta_net_layer {
    size_t n_key, n_value;         /* of all heads together */
    struct run_linear qkv, z;      /* [n_embd] to the convolution's input, and to gates, or … */
    struct run_linear fused;       /* … both: for each key head q, k, v, z */
    struct run_linear beta, alpha; /* [n_embd] to one of each per head, or … */
    struct run_linear beta_alpha;  /* … both: for each key head its betas, its alphas */
    struct run_convolution convolution;
    const float *dt_bias, *a; /* [heads] */
    struct run_delta_rule rule;
    struct run_norm_layer norm; /* norm of each head's result */
    struct run_linear out;      /* [n_value] to [n_embd] */
    struct run_delta_net_kept kept;
};

extern const struct run_mixer_ops run_delta_net_mixer;

#endif
