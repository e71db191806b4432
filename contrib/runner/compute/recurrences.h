/*
 * Steps of recurrent mixers: each token reads a layer's state and changes it. All functions
 * work in parallel; outputs overlap none of the inputs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* ---- convolution, which comes before many recurrences ---- */

/* Causal convolution of each channel with a few taps. */
struct run_convolution {
    size_t n_channels, n_taps;
    const float *taps; /* [n_taps][n_channels]; the last tap is for the token itself */
    const float *bias; /* [n_channels], or NULL */
    float *past;       /* [n_taps - 1][n_channels]: the previous inputs, the oldest first */
};

/*
 * out[t][c] = bias[c] + Σ taps[k][c] · x[t - (n_taps - 1) + k][c] for n tokens. Rows of x are
 * `stride` floats apart; `past` holds the rows before the first and is updated to the last inputs.
 * out has no gaps.
 */
void run_convolve(struct run_convolution *convolution, const float *x, size_t stride, size_t n,
                  float *out);

/* ---- the delta rule ---- */

/*
 * The gated delta rule (Yang, Kautz and Hatamizadeh 2024, equation 10). A head's state S is a
 * matrix, [width_k][width_v]. For each token, S decays and is corrected by the difference between
 * the token's value and the value that S holds for the token's key:
 * S = diag(decay) · S;    S = S + beta · k ⊗ (v - kᵀS);    y = qᵀS / √width_k
 * In Kimi's delta attention (Kimi Team 2025), each element of the key has a decay of its own.
 */
struct run_delta_rule {
    size_t n_heads;          /* heads of values, each with a state */
    size_t n_heads_k;        /* heads of keys and queries; divides n_heads */
    bool keys_take_turns;    /* head h has key head h % n_heads_k; else adjacent heads share one */
    size_t width_k, width_v; /* of a head */
    size_t n_decays;         /* of a head: 1 or width_k */
    float *state;            /* [n_heads][width_k][width_v] */
};

/* Inputs of n tokens. Tokens of q, k and v are `stride` floats apart; others have no gaps. */
struct run_delta_rows {
    const float *q, *k; /* [n_heads_k][width_k] */
    const float *v;     /* [n_heads][width_v] */
    size_t stride;
    const float *decay; /* [n_heads][n_decays]: factors, 0 to 1 */
    const float *beta;  /* [n_heads] */
};

/* out: [n][n_heads][width_v] without gaps. */
void run_delta_rule(struct run_delta_rule *rule, const struct run_delta_rows *rows, size_t n,
                    float *out);

/* ---- selective scans ---- */

/*
 * State-space models whose step, input and output depend on the token: Mamba (Gu and Dao 2023,
 * algorithm 2) and Mamba 2 (Dao and Gu 2024, section 7). With Δ = softplus(dt) every element x of a
 * head has a state h of n_state numbers:
 *     h[i] = exp(Δ · a[i]) · h[i] + Δ · b[i] · x,    y = Σ c[i] · h[i] + d · x
 */
struct run_scan {
    bool is_mamba2;        /* heads have one a */
    size_t n_heads, width; /* heads have a step each and `width` elements; Mamba: 1 */
    size_t n_state;
    size_t n_groups; /* divides n_heads: adjacent heads share b and c */
    const float *a;  /* Mamba: [n_heads][n_state]; Mamba 2: [n_heads]. Negative */
    const float *d;  /* [n_heads] */
    float *state;    /* Mamba: [n_heads][n_state]; Mamba 2: [n_heads][n_state][width] */
};

/* The inputs of n tokens. Strides, in floats, are from token to token. */
struct run_scan_rows {
    const float *x; /* [n_heads][width] */
    size_t x_stride;
    const float *dt; /* [n_heads], before softplus */
    size_t dt_stride;
    const float *b, *c; /* [n_groups][n_state] */
    size_t bc_stride;
};

/* out: [n][n_heads][width] without gaps. */
void run_scan(struct run_scan *scan, const struct run_scan_rows *rows, size_t n, float *out);

/* ---- RWKV ---- */

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

/* decay (w, negative) and bonus (u): [width]; keys, values, out: [n][width]. */
void run_wkv4(const struct run_wkv4 *wkv, const float *decay, const float *bonus, const float *keys,
              const float *values, size_t n, float *out);

/* Vectors are multiplied head by head. */
enum run_wkv_rule {
    /* RWKV 5 and 6 (Peng et al. 2024, "Eagle and Finch"): out = r · (S + diag(u) k v), then
     * S = diag(w) S + k v; in 5 w does not depend on the token */
    RUN_WKV6,
    /* RWKV 7 (Peng et al. 2025, "RWKV-7 Goose"): S = diag(w) S + b (a · S) + k v, out = r · S */
    RUN_WKV7,
    /* gated linear attention (Yang et al. 2023): S = diag(w) S + k v, out = r · S / √width */
    RUN_GATED_LINEAR,
};

/*
 * From version 5 on, a head's state is a matrix with a row for each element of a key and a column
 * for each element of a value. It is zero before the first token.
 */
struct run_wkv {
    enum run_wkv_rule rule;
    size_t n_head, width; /* elements of a head */
    float *state;         /* [n_head][width][width] */
};

/* Inputs: [n][n_head][width] each, unless stated otherwise. */
struct run_wkv_input {
    const float *r, *k, *v; /* receptance, key, value */
    const float *w;         /* decay: factors of the state's rows */
    size_t w_stride;        /* floats from a token's w to the next; 0: all tokens have the same */
    const float *u;         /* [n_head][width]: bonus, of RUN_WKV6 only */
    const float *a, *b;     /* RUN_WKV7 only: the removed and the replacing vectors */
};

void run_wkv(const struct run_wkv *wkv, const struct run_wkv_input *input, size_t n, float *out);
