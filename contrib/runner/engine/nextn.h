/*
 * The nextn layer, which follows the last layer of the model and predicts one more token
 * (DeepSeek-AI 2024, "DeepSeek-V3 Technical Report", 2.2, multi-token prediction). From the model's
 * hidden state h at a position and the next token t it computes x = layer(eh_proj ·
 * (enorm(embedding of t), hnorm(h))), with keys and values of its own. The logits of the token
 * after t, the draft, are head(shared_head_norm(x)). For the next draft, x replaces h and the draft
 * replaces t. Tensors: blk.N.nextn.*.
 */
#pragma once

#include "contrib/runner/engine/layer.h"

struct run_nextn {
    bool is_there;
    struct run_norm_layer token_norm, state_norm; /* enorm, hnorm */
    struct run_linear projection;                 /* eh_proj, [2 * n_embd] to [n_embd] */
    struct run_layer layer;
    struct run_mixers mixers;
    struct run_norm_layer head_norm;
    struct run_linear embedding, head;
    struct run_norm_layer output_norm; /* the model's */
    float *logits;                     /* [n_vocab], of the last token drafted */

    /*
     * The keys and values contain the pairs (h, t) of the positions before `first`. The states of
     * later positions are kept until the next draft and then computed together.
     */
    uint32_t first;
    size_t n_waiting, most_waiting;
    float *states;   /* [n_waiting][n_embd], before the output norm */
    int32_t *tokens; /* [n_waiting], at the same positions */
};

/* The model around the layer. */
struct run_nextn_model {
    const struct run_linear *embedding, *output;
    const struct run_norm_layer *output_norm;
    uint32_t n_vocab, n_batch;
};

/*
 * Load layer place->index, the first after the model's layers. If the file has none of its tensors,
 * nextn->is_there is false. `kinds` are the kinds of the other layers.
 */
void run_nextn_load(struct run_loader *loader, const struct run_mixer_place *place,
                    const struct run_nextn_model *model, struct run_layer_kinds *kinds,
                    struct run_nextn *nextn);

/*
 * Keep x, the last layer's output for the tokens of a pass, [n][n_embd]. Passes must follow one
 * another.
 */
void run_nextn_keep(struct run_nextn *nextn, const struct run_pass *pass, const float *x);

/*
 * Draft up to `most` tokens that may follow `token`, the next token to be fed. Return their number;
 * 0 if no token was fed before. `pass` gives the model's hparams, scratch and rotation.
 */
size_t run_nextn_draft(struct run_nextn *nextn, const struct run_pass *pass, int32_t token,
                       size_t most, int32_t *draft);

/* Forget the tokens after the first `n_past`. */
void run_nextn_rewind(struct run_nextn *nextn, uint32_t n_past);
