/* The time mixing of RWKV 4 around compute/wkv.h. */
#ifndef GGUFS_RUNNER_MIX_RWKV4_H
#define GGUFS_RUNNER_MIX_RWKV4_H

#include "contrib/runner/compute/wkv.h"
#include "contrib/runner/engine/mixer.h"
#include "contrib/runner/engine/rwkv_parts.h"

struct run_rwkv4_layer {
    struct run_token_shift shift;
    const float *key_lerp, *value_lerp, *receptance_lerp; /* [n_embd] */
    struct run_linear key, value, receptance, output;
    const float *decay, *bonus; /* [n_embd] */
    struct run_wkv4 wkv;
};

extern const struct run_mixer_ops run_rwkv4_mixer;

#endif
