/*
 * The feed-forward part of RWKV: value(max(key(x'), 0)²), where x' is interpolated between the
 * token and the one before it. Versions before 7 multiply it by sigmoid(receptance(x'')).
 */
#pragma once

#include "contrib/runner/engine/rwkv_parts.h"

struct run_channel_mix {
    bool is_there;
    struct run_token_shift shift;
    const float *key_lerp, *receptance_lerp;  /* [n_embd] */
    struct run_linear key, value, receptance; /* the last may be empty */
};

/* Leaves `layer` empty if the tensors of channel mixing are missing. */
void run_channel_mix_load(struct run_loader *loader, const struct run_hparams *hparams,
                          struct run_channel_mix *layer);

/* out = channel mix of x, both [n][n_embd]. Returns 0 or -ENOMEM. */
int run_channel_mix_apply(const struct run_channel_mix *layer, const struct run_pass *pass,
                          const float *x, float *out);
