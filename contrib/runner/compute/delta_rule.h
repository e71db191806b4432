/*
 * The gated delta rule (Yang, Kautz and Hatamizadeh 2024, equation 10): a head's state S is a
 * matrix of keys by values, which forgets and is corrected by what each token's value differs from
 * what the state has for its key:
 *     S = diag(decay) · S;    S = S + beta · k ⊗ (v - kᵀS);    y = qᵀS / √width_k
 * A decay for each element of the key is that of Kimi's delta attention (Kimi Team 2025).
 */
#ifndef GGUFS_RUNNER_DELTA_RULE_H
#define GGUFS_RUNNER_DELTA_RULE_H

#include <stdbool.h>
#include <stddef.h>

struct run_delta_rule {
    size_t n_heads;          /* of values, with a state each */
    size_t n_heads_k;        /* of keys and queries; divides n_heads */
    bool keys_take_turns;    /* head h has key h % n_heads_k; else neighbours share one */
    size_t width_k, width_v; /* of a head */
    size_t n_decays;         /* of a head: 1 or width_k */
    float *state;            /* [n_heads][width_k][width_v] */
};

/* What n tokens bring: q, k and v, `stride` floats from token to token; the rest without gaps. */
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
 * Divides vectors by their lengths: n rows, `stride` floats from one to the next, of n_heads
 * vectors of `width`. x = x / √(Σ x² + epsilon).
 */
void run_l2_norm(float *x, size_t n, size_t n_heads, size_t width, size_t stride, float epsilon);

#endif
