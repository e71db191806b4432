/*
 * The choice of the next token from its logits.
 */
#ifndef GGUFS_RUNNER_SAMPLER_H
#define GGUFS_RUNNER_SAMPLER_H

#include "contrib/runner/tree/failure.h"

#include <stddef.h>
#include <stdint.h>

/*
 * What is applied, in this order. Tokens that one step leaves out have no share in the next one's
 * probabilities.
 */
struct run_sampling {
    float repeat_penalty;  /* 1: none */
    int32_t repeat_last_n; /* tokens that it looks back on; -1: all of the context */
    uint32_t top_k;        /* only the k likeliest; 0: all */
    float top_p;           /* only the likeliest that together reach p; 1: all */
    float min_p;           /* only what has at least this share of the likeliest one; 0: all */
    float temperature;     /* 0: always the likeliest, and the lowest id of equal ones */
    uint64_t seed;
};

struct run_sampler;

/* `n_context` is what a repeat_last_n of -1 means, and the most that it can be. */
int run_sampler_open(const struct run_sampling *sampling, uint32_t n_vocab, uint32_t n_context,
                     struct run_sampler **out, struct run_failure *failure);
void run_sampler_close(struct run_sampler *sampler);

/* Tells of a token of the text, in its order; for the repetition penalty. */
void run_sampler_accept(struct run_sampler *sampler, int32_t token);

/*
 * Chooses a token. `logits` has n_vocab numbers, which are changed; -INFINITY forbids a token.
 * -EDOM if one is NaN or +INFINITY, or if all are forbidden. Takes time in O(n_vocab) and, for k
 * tokens that top-k or top-p leave, O(k log n_vocab).
 */
int run_sampler_pick(struct run_sampler *sampler, float *logits, int32_t *token,
                     struct run_failure *failure);

#endif
