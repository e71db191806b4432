/*
 * Kimi delta attention (KDA, Kimi Team 2025): a gated delta net with a decay for each element of a
 * key.
 */
#ifndef GGUFS_RUNNER_MIX_KIMI_DELTA_H
#define GGUFS_RUNNER_MIX_KIMI_DELTA_H

#include "contrib/runner/compute/delta_rule.h"
#include "contrib/runner/engine/mixer.h"
#include "contrib/runner/engine/recurrent_parts.h"

struct run_kimi_delta_layer {
    size_t n_inner;                /* heads · width */
    struct run_linear products[3]; /* [n_embd] to q, k, v, [n_inner] each */
    struct run_convolution convolutions[3];
    struct run_linear f_a, f_b; /* through a narrower row to the input of decays */
    struct run_linear g_a, g_b; /* … and of gates */
    struct run_linear beta;     /* [n_embd] to one for each head */
    const float *dt_bias;       /* [n_inner] */
    const float *a;             /* [heads] */
    struct run_delta_rule rule;
    struct run_norm_layer norm; /* of each head's result */
    struct run_linear out;      /* [n_inner] to [n_embd] */
};

extern const struct run_mixer_ops run_kimi_delta_mixer;

#endif
