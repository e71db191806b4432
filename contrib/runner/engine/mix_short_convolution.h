/* The gated short convolution of LFM2 (Liquid AI 2025). */
#ifndef GGUFS_RUNNER_MIX_SHORT_CONVOLUTION_H
#define GGUFS_RUNNER_MIX_SHORT_CONVOLUTION_H

#include "contrib/runner/engine/mixer.h"
#include "contrib/runner/engine/recurrent_parts.h"

/* out(c · convolution(b · x)), where b, c and x are products of the input. */
struct run_short_layer {
    struct run_linear in; /* [n_embd] to b, c and x, each [n_embd] */
    struct run_convolution convolution;
    struct run_linear out;
};

extern const struct run_mixer_ops run_short_mixer;

#endif
