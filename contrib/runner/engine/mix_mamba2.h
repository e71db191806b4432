/*
 * Mamba 2 (Dao and Gu 2024).
 */
#ifndef GGUFS_RUNNER_MIX_MAMBA2_H
#define GGUFS_RUNNER_MIX_MAMBA2_H

#include "contrib/runner/compute/selective_scan.h"
#include "contrib/runner/engine/pass.h"
#include "contrib/runner/engine/recurrent_parts.h"

struct run_mamba2_layer {
    size_t n_inner;       /* heads · width */
    struct run_linear in; /* [n_embd] to gates, what is convolved (inputs, b and c), and steps */
    struct run_convolution convolution;
    const float *dt_bias; /* [heads] */
    struct run_scan scan;
    struct run_norm_layer norm; /* of each group of what the gates leave; or none */
    struct run_linear out;      /* [n_inner] to [n_embd] */
};

void run_mamba2_load(struct run_loader *loader, const struct run_hparams *hparams,
                     struct run_mamba2_layer *layer);
void run_mamba2_reset(struct run_mamba2_layer *layer);

/* out = what the layer makes of x, both [n][n_embd]. Returns 0 or -ENOMEM. */
int run_mamba2_apply(struct run_mamba2_layer *layer, const struct run_pass *pass, const float *x,
                     float *out);

#endif
