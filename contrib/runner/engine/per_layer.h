/*
 * Per-layer embeddings (Gemma 3n, 2025): a token has a narrow embedding for each layer besides its
 * main one. It is multiplied by a gate made from the layer's output, projected and added.
 */
#pragma once

#include "contrib/runner/engine/loader.h"
#include "contrib/runner/engine/pass.h"

/* Makes the per-layer embeddings. If tokens.weight.data is NULL, the model has none. */
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
