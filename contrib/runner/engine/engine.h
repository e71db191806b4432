/*
 * Runs a model: feed it tokens and get logits. Its row in the table of architectures and the
 * tensors of its tree define the computation.
 */
#pragma once

#include "contrib/runner/tree/metadata.h"
#include "contrib/runner/tree/weights.h"

struct run_engine_options {
    /* limit of the tokens that can be fed; 0: the training context */
    uint32_t n_context;
    uint32_t n_batch;    /* limit of the tokens computed at once; 0: 512 */
    uint32_t cache_type; /* of keys and values; see struct run_cache */
    bool has_nextn;      /* load the layer that run_engine_draft() uses, if the model has one */
    bool can_rewind;     /* recurrent layers keep what run_engine_rewind() needs, if they can */
    /*
     * Called before each layer, by the thread that feeds, with the number of tokens of the call
     * that are done, a layer counting as a share of its batch. False before a batch ends the call,
     * with -EINTR. NULL: no call.
     */
    bool (*on_layer)(void *user, size_t n_done);
    void *user;
};

struct run_engine;

/*
 * Map the model's tensors and check that they are complete and have the right shapes. `metadata`
 * and `weights` must outlive the engine. Returns 0, -ENOTSUP for an unknown architecture, -ENOENT
 * for a missing key or tensor, or -EINVAL for a wrong one; then *out is NULL.
 */
int run_engine_open(const struct run_metadata *metadata, struct run_weights *weights,
                    const struct run_engine_options *options, struct run_engine **out,
                    struct run_failure *failure);
void run_engine_close(struct run_engine *engine);

struct run_engine_counts {
    uint32_t n_vocab;   /* logits per token */
    uint32_t n_context; /* tokens that fit */
    uint32_t n_past;    /* tokens fed so far */
    /* The weights that one token needs: all mapped tensors, without the rows of embeddings for
     * other tokens and positions, and without the experts that are not chosen. */
    uint64_t token_bytes;
    /* Allocated for keys and values, and for the states of recurrent layers: what `ggufs --info`
     * states for as many tokens as were fed. Without the nextn layer's. */
    uint64_t cache_bytes, state_bytes;
};

struct run_engine_counts run_engine_counts(const struct run_engine *engine);

enum run_logits { RUN_LOGITS_NONE, RUN_LOGITS_LAST, RUN_LOGITS_ALL };

/*
 * Feed `n` tokens after those fed before and write logits: of the last token (n_vocab floats), of
 * all (n * n_vocab floats, token by token), or none (`logits` may be NULL). The logits do not
 * depend, bit for bit, on how tokens are divided into calls or batches. Returns 0; -ERANGE if the
 * tokens do not fit the context or -EINVAL for an id outside the vocabulary, and then nothing was
 * fed; -ENOMEM, and then the engine must be reset, since recurrent layers may have seen part of a
 * batch; -EIO if a model file was changed meanwhile, and then the logits may be wrong; or -EDOM if
 * a logit is NaN or infinity. Call it from one thread at a time; it works in parallel inside.
 */
int run_engine_feed(struct run_engine *engine, const int32_t *tokens, size_t n,
                    enum run_logits which, float *logits, struct run_failure *failure);

/* Forget all tokens. */
void run_engine_reset(struct run_engine *engine);

/*
 * Forget all but the first `n_past` tokens. The engine must be able to rewind.
 * Unless run_engine_keeps() is true, `n_past` must be after the first token of the last call of
 * run_engine_feed(), which must have asked for all logits of at most a batch or 64 tokens. Returns
 * 0 or -ENOMEM, and then the engine must be reset.
 */
int run_engine_rewind(struct run_engine *engine, uint32_t n_past, struct run_failure *failure);
bool run_engine_can_rewind(const struct run_engine *engine);

/*
 * Return true if the engine can rewind to n_past tokens before the last call of run_engine_feed():
 * no layer keeps a state that covers all tokens, as recurrent ones do, and those with a window
 * still have the keys and values that the next token sees.
 */
bool run_engine_keeps(const struct run_engine *engine, uint32_t n_past);

/*
 * Return true if the engine has loaded a nextn layer and can rewind. If the layer was not loaded
 * because it is incomplete, *problem is the reason; else it is NULL.
 */
bool run_engine_can_draft(const struct run_engine *engine, const char **problem);

/*
 * Draft up to `most` tokens that may follow `token`, which must be fed next. Stores their number at
 * `*n`; 0 if no token was fed before. The engine must be able to draft. Returns 0 or -ENOMEM, and
 * then the engine must be reset.
 */
int run_engine_draft(struct run_engine *engine, int32_t token, size_t most, int32_t *draft,
                     size_t *n, struct run_failure *failure);
