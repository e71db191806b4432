/*
 * The recurrences of RWKV: each token reads a layer's state and changes it. Vectors are multiplied
 * head by head.
 */
#pragma once

#include <stddef.h>

/*
 * RWKV 4 (Peng et al. 2023, "RWKV: Reinventing RNNs for the Transformer Era"). For each channel,
 * the mean of all values so far, with the weights
 *
 *   exp(k[i] + (t - 1 - i) · w) for earlier tokens, exp(k[t] + u) for the newest
 *
 * As in the paper's appendix, numerator and denominator are stored divided by exp(exponent), where
 * exponent is the largest so far, so that nothing overflows.
 */
struct run_wkv4 {
    size_t width;
    float *sums;      /* [2][width]: numerators, denominators; 0 before the first token */
    float *exponents; /* [width]; RUN_WKV4_LEAST_EXPONENT before the first token */
};

/* Lower than all exponents that follow. */
#define RUN_WKV4_LEAST_EXPONENT (-1e38f)

/* decay (w, negative) and bonus (u): [width]; keys, values, out: [n][width]. Works in parallel. */
void run_wkv4(const struct run_wkv4 *wkv, const float *decay, const float *bonus, const float *keys,
              const float *values, size_t n, float *out);

/*
 * From version 5 on, a head's state is a matrix with a row for each element of a key and a column
 * for each element of a value. It is zero before the first token.
 */
struct run_wkv {
    size_t n_head, width; /* elements of a head */
    float *state;         /* [n_head][width][width] */
};

/* Inputs: [n][n_head][width] each, unless stated otherwise. */
struct run_wkv_input {
    const float *r, *k, *v; /* receptance, key, value */
    const float *w;         /* decay: factors of the state's rows */
    size_t w_stride;        /* floats from a token's w to the next; 0: all tokens have the same */
    const float *u;         /* [n_head][width]: bonus, of run_wkv6() only */
    const float *a, *b;     /* run_wkv7() only: the removed and the replacing vectors */
};

/*
 * RWKV 5 and 6 (Peng et al. 2024, "Eagle and Finch"): out = r · (S + diag(u) k v), then
 * S = diag(w) S + k v; in 5 w does not depend on the token. Works in parallel.
 */
void run_wkv6(const struct run_wkv *wkv, const struct run_wkv_input *input, size_t n, float *out);

/*
 * Gated linear attention (Yang et al. 2023): S = diag(w) S + k v, out = r · S / √width. Works in
 * parallel.
 */
void run_gated_linear_attention(const struct run_wkv *wkv, const struct run_wkv_input *input,
                                size_t n, float *out);

/*
 * RWKV 7 (Peng et al. 2025, "RWKV-7 Goose"): S = diag(w) S + b (a · S) + k v, out = r · S. Works in
 * parallel.
 */
void run_wkv7(const struct run_wkv *wkv, const struct run_wkv_input *input, size_t n, float *out);
