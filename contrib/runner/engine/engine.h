/*
 * A model that runs: feed it tokens, get logits. What it computes is decided by its row in
 * architectures.c and by the tensors that its tree has.
 */
#ifndef GGUFS_RUNNER_ENGINE_H
#define GGUFS_RUNNER_ENGINE_H

#include "contrib/runner/tree/metadata.h"
#include "contrib/runner/tree/weights.h"

struct run_engine_options {
    uint32_t n_context; /* tokens to keep at most; 0: what the model was trained for */
    uint32_t n_batch;   /* tokens to compute at once at most; 0: 512 */
    bool is_cache_f16;  /* keep keys and values in 16 bits */
};

struct run_engine;

/*
 * Maps the tensors that the architecture needs and checks their shapes. `metadata` and `weights`
 * must outlive the engine. -ENOTSUP for an unknown architecture; -ENOENT for a missing key or
 * tensor; -EINVAL for a wrong one.
 */
int run_engine_open(const struct run_metadata *metadata, struct run_weights *weights,
                    const struct run_engine_options *options, struct run_engine **out,
                    struct run_failure *failure);
void run_engine_close(struct run_engine *engine);

/* The number of logits per token; the most tokens that fit; the tokens that were fed. */
uint32_t run_engine_n_vocab(const struct run_engine *engine);
uint32_t run_engine_n_context(const struct run_engine *engine);
uint32_t run_engine_n_past(const struct run_engine *engine);

enum run_logits { RUN_LOGITS_NONE, RUN_LOGITS_LAST, RUN_LOGITS_ALL };

/*
 * Feeds `n` tokens behind those fed before and writes logits: of the last one (n_vocab floats), of
 * all (n * n_vocab, token after token), or none (`logits` may be NULL). Results do not depend on
 * how tokens are divided into calls or batches. -ERANGE if they do not fit the context, -EINVAL for
 * an id outside the vocabulary; then nothing was fed. After -ENOMEM only a reset helps: states of
 * recurrent layers may hold a part of a batch. One thread at a time; works with OpenMP
 * inside.
 */
int run_engine_feed(struct run_engine *engine, const int32_t *tokens, size_t n,
                    enum run_logits which, float *logits, struct run_failure *failure);

/* Forgets everything that was fed. */
void run_engine_reset(struct run_engine *engine);

/* The names of the architectures that are known, in the order of the table; NULL behind the last.
 */
const char *run_architecture_name(size_t index);

#endif
