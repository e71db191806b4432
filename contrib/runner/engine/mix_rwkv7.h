/* The time mixing of RWKV 7, and of ARWKV 7, around compute/wkv.h. */
#ifndef GGUFS_RUNNER_MIX_RWKV7_H
#define GGUFS_RUNNER_MIX_RWKV7_H

#include "contrib/runner/compute/wkv.h"
#include "contrib/runner/engine/mixer.h"
#include "contrib/runner/engine/rwkv_parts.h"

/* The inputs interpolated between a token and the one before it, in the order of the weights. */
enum run_rwkv7_input {
    RUN_RWKV7_RECEPTANCE,
    RUN_RWKV7_DECAY,
    RUN_RWKV7_KEY,
    RUN_RWKV7_VALUE,
    RUN_RWKV7_RATE,
    RUN_RWKV7_GATE,
    RUN_RWKV7_INPUTS
};

struct run_rwkv7_layer {
    bool is_first; /* the first layer: the others mix its values with theirs */
    struct run_token_shift shift;
    const float *lerps; /* [5 or 6][n_embd] */
    struct run_linear receptance, key, value, output;
    struct run_low_rank decay, rate;
    struct run_low_rank
        residual;             /* the share of the first layer's values; the first layer has none */
    struct run_low_rank gate; /* may be empty */
    const float *key_removal; /* [n_embd]: makes the removal key */
    const float *key_rate;    /* [n_embd]: the influence of the rate on keys */
    const float *bonus;       /* [n_embd] */
    struct run_norm_layer norm; /* of each head's result; may be absent */
    struct run_wkv wkv;
};

extern const struct run_mixer_ops run_rwkv7_mixer;

#endif
