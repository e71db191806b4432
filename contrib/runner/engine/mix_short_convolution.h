/*
 * The gated short convolution of LFM2 (Liquid AI 2025).
 */
#ifndef GGUFS_RUNNER_MIX_SHORT_CONVOLUTION_H
#define GGUFS_RUNNER_MIX_SHORT_CONVOLUTION_H

#include "contrib/runner/engine/pass.h"
#include "contrib/runner/engine/recurrent_parts.h"

/* out(c · convolution(b · x)), where b, c and x are products of the input. */
struct run_short_layer {
    struct run_linear in; /* [n_embd] to b, c and x, each [n_embd] */
    struct run_convolution convolution;
    struct run_linear out;
};

void run_short_load(struct run_loader *loader, const struct run_hparams *hparams,
                    struct run_short_layer *layer);
void run_short_reset(struct run_short_layer *layer);

/* out = what the layer makes of x, both [n][n_embd]. Returns 0 or -ENOMEM. */
int run_short_apply(struct run_short_layer *layer, const struct run_pass *pass, const float *x,
                    float *out);

#endif
