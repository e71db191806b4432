/*
 * Mixers: the parts of layers that mix tokens. A kind of mixer is a row of operations; a layer has
 * one mixer, none, or attention and a recurrent mixer side by side, whose outputs are added.
 */
#pragma once

#include "contrib/runner/engine/loader.h"
#include "contrib/runner/engine/pass.h"

enum { RUN_MAX_MIXERS = 2 };

struct run_mixer {
    const struct run_mixer_ops *ops;
    void *state; /* ops->n_bytes; lives as long as the model */
};

/* The mixers of a layer. */
struct run_mixers {
    struct run_mixer list[RUN_MAX_MIXERS];
    size_t n;
};

/* The place of a mixer in the model, given when it is loaded. */
struct run_mixer_place {
    const struct run_hparams *hparams;
    uint32_t index;                  /* of the layer */
    uint32_t cache_type, n_batch;    /* see struct run_cache */
    const struct run_mixers *layers; /* [n_layer]; those before `index` are loaded */
};

struct run_mixer_ops {
    size_t n_bytes; /* size of its state, which starts as zeros */

    /* Load the weights. Failures stay in the loader. */
    void (*load)(struct run_loader *loader, const struct run_mixer_place *place, void *mixer);

    /* out = the mixer's output for x, both [n][n_embd]. */
    void (*apply)(void *mixer, const struct run_pass *pass, const float *x, float *out);

    /*
     * Forget all but the first n tokens of the last pass, which had is_draft. NULL if the mixer has
     * no state or cannot do that.
     */
    void (*rewind)(void *mixer, struct run_scratch *scratch, size_t n);
};

/* The kinds of mixers. */
extern const struct run_mixer_ops run_attention_mixer, run_latent_mixer, run_rwkv_mixer,
    run_rwkv7_mixer, run_short_mixer, run_delta_net_mixer, run_mamba_mixer;

/* Choose and load the mixers of layer place->index. loader->prefix names the layer. */
void run_mixers_load(struct run_loader *loader, const struct run_mixer_place *place,
                     struct run_mixers *mixers);

/* Return the state of the layer's mixer of that kind, or NULL if it has none. */
void *run_mixers_find(const struct run_mixers *mixers, const struct run_mixer_ops *ops);

/* out = the sum of the mixers' outputs for x, both [n][n_embd]; there must be one. */
void run_mixers_apply(const struct run_mixers *mixers, const struct run_pass *pass, const float *x,
                      float *out);

/* Rewind the recurrent mixers, which must be able to; see struct run_mixer_ops. */
void run_mixers_rewind(const struct run_mixers *mixers, struct run_scratch *scratch, size_t n);
