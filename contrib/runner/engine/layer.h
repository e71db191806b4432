/* A layer of a model: its mixers, its feed-forward, and the norms around them. */
#pragma once

#include "contrib/runner/engine/altup.h"
#include "contrib/runner/engine/feed_forward.h"
#include "contrib/runner/engine/mixer.h"

struct run_layer {
    struct run_norm_layer
        mix_norm; /* before the mixers; also before a parallel feed-forward without ffn_norm */
    struct run_norm_layer mix_norm_2;    /* Falcon 40B: before the mixers, instead of mix_norm */
    struct run_norm_layer mix_post_norm; /* after the mixers */
    struct run_norm_layer ffn_norm, ffn_post_norm;
    bool is_parallel;
    struct run_mixers *mixers;
    struct run_linear laurel_l,
        laurel_r; /* low-rank product beside the mixers (Gemma 3n's LAuReL) */
    struct run_norm_layer laurel_norm;
    struct run_feed_forward feed_forward;
    struct run_altup altup;
    struct run_per_layer per_layer;
    bool is_halved;     /* the output is halved: RWKV 6, against overflow */
    const float *scale; /* one float, or NULL; see RUN_SCALES_EMBEDDINGS */
};

/* Loads layer place->index, with its mixers in `mixers`, which must outlive the layer. Sets
 * loader->prefix. */
void run_layer_load(struct run_loader *loader, const struct run_mixer_place *place,
                    struct run_mixers *mixers, struct run_layer *layer);

/* Applies the layer in place to x, [n_streams][n][n_embd]. */
void run_layer_apply(struct run_layer *layer, const struct run_pass *pass, float *x);
