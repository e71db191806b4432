/*
 * A layer of a model: what mixes tokens, what works on each, and norms around them.
 */
#ifndef GGUFS_RUNNER_LAYER_H
#define GGUFS_RUNNER_LAYER_H

#include "contrib/runner/engine/altup.h"
#include "contrib/runner/engine/feed_forward.h"
#include "contrib/runner/engine/mix_attention.h"
#include "contrib/runner/engine/mix_latent.h"
#include "contrib/runner/engine/mix_recurrent.h"
#include "contrib/runner/engine/per_layer.h"

/* What mixes tokens; the tensors of a layer tell. */
enum run_mixer {
    RUN_MIX_NOTHING,
    RUN_MIX_ATTENTION,
    RUN_MIX_LATENT,
    RUN_MIX_RECURRENT,
    RUN_MIX_BOTH,   /* attention and a recurrent mixer beside it: their sum */
    RUN_MIX_LINEAR, /* nothing is mixed: one product in the place of attention */
};

struct run_layer {
    struct run_norm_layer mix_norm;   /* before mixing; also before feed_forward if that is parallel
                                         and   has no norm of its own */
    struct run_norm_layer mix_norm_2; /* Falcon 40B: before mixing, in the place of mix_norm */
    struct run_norm_layer mix_post_norm; /* of what mixing gives */
    struct run_norm_layer ffn_norm, ffn_post_norm;
    bool is_parallel;
    enum run_mixer mixer;
    struct run_attention_layer attention;
    struct run_latent_layer latent;
    struct run_recurrent_layer recurrent;
    struct run_linear linear;
    struct run_linear laurel_l, laurel_r; /* beside mixing, through a narrower row (Gemma 3n) */
    struct run_norm_layer laurel_norm;
    struct run_feed_forward feed_forward;
    struct run_altup altup;
    struct run_per_layer per_layer;
    bool is_halved;     /* what leaves the layer: RWKV 6, against overflow */
    const float *scale; /* one, see enum run_layer_scale; or NULL */
};

/* `index` is the layer's number; loader->prefix is set here. */
void run_layer_load(struct run_loader *loader, const struct run_hparams *hparams, uint32_t index,
                    bool is_cache_f16, struct run_layer *layer);

/* Makes the layer use keys and values of `source`, as its shape says. */
void run_layer_share(struct run_loader *loader, struct run_layer *layer,
                     const struct run_layer *source);
/* Makes sparse attention without an indexer choose what the layer before chose. */
void run_layer_follow(struct run_loader *loader, struct run_layer *layer,
                      const struct run_layer *before);
void run_layer_free(struct run_layer *layer);

/* Forgets what the layer keeps of earlier tokens. */
void run_layer_reset(struct run_layer *layer);

/* x, [n][n_embd] or as many streams of it as there are, goes through the layer in place. Returns 0
 * or -ENOMEM. */
int run_layer_apply(struct run_layer *layer, const struct run_pass *pass, float *x);

#endif
