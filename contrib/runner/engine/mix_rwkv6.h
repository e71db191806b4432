/* The time mixing of RWKV 5 and 6, and of RWKV6-Qwen2, around compute/wkv.h. */
#ifndef GGUFS_RUNNER_MIX_RWKV6_H
#define GGUFS_RUNNER_MIX_RWKV6_H

#include "contrib/runner/compute/wkv.h"
#include "contrib/runner/engine/mixer.h"
#include "contrib/runner/engine/rwkv_parts.h"

/* The inputs interpolated between a token and the one before it, in the order of the weights. */
enum run_rwkv6_input {
    RUN_RWKV6_DECAY,
    RUN_RWKV6_KEY,
    RUN_RWKV6_VALUE,
    RUN_RWKV6_RECEPTANCE,
    RUN_RWKV6_GATE,
    RUN_RWKV6_INPUTS
};

struct run_rwkv6_layer {
    struct run_token_shift shift;
    const float *lerps[RUN_RWKV6_INPUTS]; /* [n_embd] each, of version 5 */
    const float *mix_lerp;                /* [n_embd]: makes the input of `mix` … */
    struct run_low_rank mix;              /* … which makes the lerps of a token, in version 6 */
    struct run_linear key, value, receptance, gate, output; /* 5.1 has no gate */
    size_t n_head_kv; /* fewer than heads in RWKV6-Qwen2, where neighbours share keys and values */
    const float *constant_decay; /* [n_embd], of version 5 */
    struct run_low_rank decay;   /* of a token, of version 6 */
    const float *bonus;          /* [n_embd]; RWKV6-Qwen2, gated linear attention, has none */
    struct run_norm_layer norm;  /* of each head's result */
    struct run_wkv wkv;
};

extern const struct run_mixer_ops run_rwkv6_mixer;

#endif
