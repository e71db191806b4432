/* The parts that Gemma 3n, and Gemma 4 in part, have around the layers of other models. */
#pragma once

#include "contrib/runner/engine/loader.h"
#include "contrib/runner/engine/pass.h"

/*
 * Alternating updates (AltUp, Baykal et al. 2023) as in Gemma 3n: the residual has several streams,
 * and each layer computes on the first one. The other streams are predicted before the layer and
 * corrected after it.
 *
 * The parts around the layers. If in.weight.data is NULL, the model has one stream.
 */
struct run_altup_ends {
    struct run_linear in, out; /* a matrix [n_embd] to [n_embd] for each stream but the first */
};

/* The part in a layer. If router.weight.data is NULL, the layer has no alternating updates. */
struct run_altup {
    struct run_norm_layer router_norm;
    struct run_linear router;           /* [n_embd] to [n_streams] */
    struct run_linear predict, correct; /* [n_streams] to [n_streams²] and to [n_streams] */
    const float
        *scale; /* [n_embd]: scales the first stream before the per-layer embedding reads it */
};

/* Sets hparams->n_streams. */
void run_altup_load_ends(struct run_loader *loader, struct run_hparams *hparams,
                         struct run_altup_ends *ends);
void run_altup_load(struct run_loader *loader, const struct run_hparams *hparams,
                    struct run_altup *altup);

/*
 * Streams are [n_streams][n][n_embd]. run_altup_begin() makes the other streams from the first;
 * run_altup_end() combines all into the first.
 */
void run_altup_begin(const struct run_altup_ends *ends, const struct run_pass *pass,
                     float *streams);
void run_altup_end(const struct run_altup_ends *ends, const struct run_pass *pass, float *streams);

/* predictions = the predicted streams, before the layer. */
void run_altup_predict(const struct run_altup *altup, const struct run_pass *pass,
                       const float *streams, float *predictions);

/* streams = predictions, corrected by `active`, [n][n_embd], the layer's output for the first
 * stream. */
void run_altup_correct(const struct run_altup *altup, const struct run_pass *pass,
                       const float *predictions, const float *active, float *streams);

/*
 * Per-layer embeddings (Gemma 3n, 2025): a token has a narrow embedding for each layer besides its
 * main one. It is multiplied by a gate made from the layer's output, projected and added.
 *
 * The source makes these embeddings. If tokens.weight.data is NULL, the model has none.
 */
struct run_per_layer_source {
    struct run_linear tokens;     /* rows are tokens: [n_layer][n_per_layer] */
    struct run_linear projection; /* [n_embd] to the same */
    struct run_norm_layer norm;   /* of each projected row */
};

struct run_per_layer {
    uint32_t index;         /* of the layer */
    struct run_linear gate; /* [n_embd] to [n_per_layer]; empty without per-layer embeddings */
    struct run_linear projection; /* back */
    struct run_norm_layer post_norm;
};

/* Sets hparams->n_per_layer. */
void run_per_layer_load_source(struct run_loader *loader, struct run_hparams *hparams,
                               uint64_t n_vocab, struct run_per_layer_source *source);
void run_per_layer_load(struct run_loader *loader, const struct run_hparams *hparams,
                        uint32_t index, struct run_per_layer *layer);

/* The per-layer embeddings of the pass's tokens, whose main embeddings are x. */
const float *run_per_layer_make(const struct run_per_layer_source *source,
                                const struct run_pass *pass, const float *x);

/* out = the contribution of the per-layer embedding, gated by the layer's output x; both
 * [n][n_embd]. */
void run_per_layer_apply(const struct run_per_layer *layer, const struct run_pass *pass,
                         const float *x, float *out);
