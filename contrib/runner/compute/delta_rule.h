/*
 * The gated delta rule (Yang, Kautz and Hatamizadeh 2024, equation 10). A head's state S is a
 * matrix, [width_k][width_v]. For each token, S decays and is corrected by the difference between
 * the token's value and the value that S holds for the token's key:
 * S = diag(decay) · S;    S = S + beta · k ⊗ (v - kᵀS);    y = qᵀS / √width_k
 * In Kimi's delta attention (Kimi Team 2025), each element of the key has a decay of its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

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

/* out: [n][n_heads][width_v] without gaps, overlapping nothing. Works in parallel. */
void run_delta_rule(struct run_delta_rule *rule, const struct run_delta_rows *rows, size_t n,
                    float *out);

/*
 * Divide vectors by their lengths, x = x / √(Σ x² + epsilon): n rows, `stride` floats apart, of
 * n_heads vectors of `width` floats.
 */
void run_l2_norm(float *x, size_t n, size_t n_heads, size_t width, size_t stride, float epsilon);
