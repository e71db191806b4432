/*
 * The time mixing of RWKV 4 around compute/wkv.h.
 */
#ifndef GGUFS_RUNNER_MIX_RWKV4_H
#define GGUFS_RUNNER_MIX_RWKV4_H

#include "contrib/runner/compute/wkv.h"
#include "contrib/runner/engine/rwkv_parts.h"

struct run_rwkv4_layer {
    struct run_token_shift shift;
    const float *key_lerp, *value_lerp, *receptance_lerp; /* [n_embd] */
    struct run_linear key, value, receptance, output;
    const float *decay, *bonus; /* [n_embd] */
    struct run_wkv4 wkv;
};

void run_rwkv4_load(struct run_loader *loader, const struct run_hparams *hparams,
                    struct run_rwkv4_layer *layer);
void run_rwkv4_reset(const struct run_rwkv4_layer *layer);

/* out = time mix of x, both [n][n_embd]. Returns 0 or -ENOMEM. */
int run_rwkv4_apply(const struct run_rwkv4_layer *layer, const struct run_pass *pass,
                    const float *x, float *out);

#endif
