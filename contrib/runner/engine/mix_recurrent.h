/*
 * Mixers that keep a state of fixed size instead of keys and values. Which one a layer has is seen
 * from its tensors; with RWKV, all layers have the one of its version.
 */
#ifndef GGUFS_RUNNER_MIX_RECURRENT_H
#define GGUFS_RUNNER_MIX_RECURRENT_H

#include "contrib/runner/engine/mix_delta_net.h"
#include "contrib/runner/engine/mix_kimi_delta.h"
#include "contrib/runner/engine/mix_mamba.h"
#include "contrib/runner/engine/mix_mamba2.h"
#include "contrib/runner/engine/mix_rwkv4.h"
#include "contrib/runner/engine/mix_rwkv6.h"
#include "contrib/runner/engine/mix_rwkv7.h"
#include "contrib/runner/engine/mix_short_convolution.h"

enum run_recurrence {
    RUN_RECURRENCE_NONE,
    RUN_RECURRENCE_MAMBA,
    RUN_RECURRENCE_MAMBA2,
    RUN_RECURRENCE_SHORT,
    RUN_RECURRENCE_DELTA_NET,
    RUN_RECURRENCE_KIMI_DELTA,
    RUN_RECURRENCE_RWKV4,
    RUN_RECURRENCE_RWKV6,
    RUN_RECURRENCE_RWKV7,
};

struct run_recurrent_layer {
    enum run_recurrence kind;
    union {
        struct run_mamba_layer mamba;
        struct run_mamba2_layer mamba2;
        struct run_short_layer brief;
        struct run_delta_net_layer delta_net;
        struct run_kimi_delta_layer kimi_delta;
        struct run_rwkv4_layer rwkv4;
        struct run_rwkv6_layer rwkv6;
        struct run_rwkv7_layer rwkv7;
    } is;
};

/* `index` is the layer's number. Leaves `kind` as it is, none, if the layer has no tensors of any.
 * What is loaded lives as long as the model. */
void run_recurrent_load(struct run_loader *loader, const struct run_hparams *hparams,
                        uint32_t index, struct run_recurrent_layer *layer);

/* Forgets all earlier tokens. */
void run_recurrent_reset(struct run_recurrent_layer *layer);

/* out = what the layer makes of x, both [n][n_embd]. Returns 0 or -ENOMEM. */
int run_recurrent_apply(struct run_recurrent_layer *layer, const struct run_pass *pass,
                        const float *x, float *out);

#endif
