/* Mamba 2 (Dao and Gu 2024). */
#ifndef GGUFS_RUNNER_MIX_MAMBA2_H
#define GGUFS_RUNNER_MIX_MAMBA2_H

#include "contrib/runner/compute/selective_scan.h"
#include "contrib/runner/engine/mixer.h"
#include "contrib/runner/engine/recurrent_parts.h"

struct run_mamba2_layer {
    size_t n_inner;       /* heads · width */
    struct run_linear in; /* [n_embd] to gates, convolution's inputs (x, b and c), and steps */
    struct run_convolution convolution;
    const float *dt_bias; /* [heads] */
    struct run_scan scan;
    struct run_norm_layer norm; /* norm of each group of the gated result, or none */
    struct run_linear out;      /* [n_inner] to [n_embd] */
};

extern const struct run_mixer_ops run_mamba2_mixer;

#endif
