/*
 * Mamba (Gu and Dao 2023), with the norms of Jamba and Falcon Mamba, and PLaMo 2's form of it,
 * whose heads have one step and one decay for all their elements, as in Mamba 2.
 */
#ifndef GGUFS_RUNNER_MIX_MAMBA_H
#define GGUFS_RUNNER_MIX_MAMBA_H

#include "contrib/runner/compute/selective_scan.h"
#include "contrib/runner/engine/mixer.h"
#include "contrib/runner/engine/recurrent_parts.h"

struct run_mamba_layer {
    bool has_heads;           /* PLaMo 2 */
    size_t n_inner;           /* channels: heads · width */
    size_t n_rank;            /* of the steps before `dt` */
    size_t b_at, c_at, dt_at; /* where these begin in a row of `x`'s product */
    struct run_linear in; /* [n_embd] to channels and gates: one after the other, or head by head
                             the gates first */
    struct run_convolution convolution;
    struct run_linear x; /* [n_inner] to steps, b and c, or b, c and steps */
    struct run_norm_layer dt_norm, b_norm, c_norm;
    struct run_linear dt; /* [n_rank] to a step for each head */
    struct run_scan scan;
    struct run_linear out; /* [n_inner] to [n_embd] */
};

extern const struct run_mixer_ops run_mamba_mixer;

#endif
