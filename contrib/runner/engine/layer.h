/*
 * A layer of a model: what mixes tokens, what works on each, and norms around them.
 */
#ifndef GGUFS_RUNNER_LAYER_H
#define GGUFS_RUNNER_LAYER_H

#include "contrib/runner/engine/altup.h"
#include "contrib/runner/engine/feed_forward.h"
#include "contrib/runner/engine/mixer.h"
#include "contrib/runner/engine/per_layer.h"

struct run_layer {
    struct run_norm_layer mix_norm;   /* before mixing; also before feed_forward if that is parallel
                                         and   has no norm of its own */
    struct run_norm_layer mix_norm_2; /* Falcon 40B: before mixing, in the place of mix_norm */
    struct run_norm_layer mix_post_norm; /* of what mixing gives */
    struct run_norm_layer ffn_norm, ffn_post_norm;
    bool is_parallel;
    struct run_mixers *mixers;
    struct run_linear laurel_l, laurel_r; /* beside mixing, through a narrower row (Gemma 3n) */
    struct run_norm_layer laurel_norm;
    struct run_feed_forward feed_forward;
    struct run_altup altup;
    struct run_per_layer per_layer;
    bool is_halved;     /* what leaves the layer: RWKV 6, against overflow */
    const float *scale; /* one, see enum run_layer_scale; or NULL */
};

/* Loads layer place->index, and its mixers to `mixers`, which must live as long as the layer. Sets
 * loader->prefix. */
void run_layer_load(struct run_loader *loader, const struct run_mixer_place *place,
                    struct run_mixers *mixers, struct run_layer *layer);
void run_layer_free(struct run_layer *layer);

/* Forgets what the layer keeps of earlier tokens. */
void run_layer_reset(struct run_layer *layer);

/* x, [n][n_embd] or as many streams of it as there are, goes through the layer in place. Returns 0
 * or -ENOMEM. */
int run_layer_apply(struct run_layer *layer, const struct run_pass *pass, float *x);

#endif
