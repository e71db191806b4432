/* Choosing the next token from its logits. */
#pragma once

#include "contrib/runner/tree/failure.h"

#include <stdint.h>

/*
 * Sampling parameters, applied in this order. A token that one step removes has probability 0 in
 * the next step.
 */
struct run_sampling {
    float repeat_penalty;  /* 1: no penalty */
    int32_t repeat_last_n; /* size of the window in tokens; -1: the whole context */
    uint32_t top_k;        /* keep the k likeliest; 0: all */
    float top_p;           /* keep the likeliest whose probabilities reach p; 1: all */
    /* keep tokens with at least this share of the highest probability; 0: all */
    float min_p;
    float temperature; /* 0: always the likeliest, of equal ones the lowest id */
    uint64_t seed;
};

/*
 * Pseudo-random numbers: xoshiro256++ 1.0 of David Blackman and Sebastiano Vigna, seeded with
 * splitmix64, both from https://prng.di.unimi.it (public domain). The same seed gives the same
 * numbers everywhere.
 */
struct run_xoshiro {
    uint64_t state[4];
};

void run_xoshiro_seed(struct run_xoshiro *xoshiro, uint64_t seed);
uint64_t run_xoshiro_next(struct run_xoshiro *xoshiro);

/* Uniform in [0, 1), a multiple of 2^-53. */
double run_xoshiro_double(struct run_xoshiro *xoshiro);

struct run_sampler;

/*
 * Make a sampler. `n_context` is the value of a repeat_last_n of -1, and its maximum. Returns 0 or
 * -ENOMEM.
 */
int run_sampler_open(const struct run_sampling *sampling, uint32_t n_vocab, uint32_t n_context,
                     struct run_sampler **out, struct run_failure *failure);
void run_sampler_close(struct run_sampler *sampler);

/* Add a token of the text to the window of the repetition penalty. */
void run_sampler_accept(struct run_sampler *sampler, int32_t token);

/*
 * Choose a token. `logits` has n_vocab numbers, which are changed; -INFINITY forbids a token.
 * Returns 0, or -EDOM if a logit is NaN or +INFINITY or all tokens are forbidden. Takes O(n_vocab)
 * time, plus O(k log n_vocab) for k tokens that top-k or top-p keep.
 */
int run_sampler_pick(struct run_sampler *sampler, float *logits, int32_t *token,
                     struct run_failure *failure);
