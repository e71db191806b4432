/*
 * The recurrences of state-space models whose step, input and output depend on the token: Mamba (Gu
 * and Dao 2023, algorithm 2) and Mamba 2 (Dao and Gu 2024, section 7).
 *
 * With Δ = softplus(dt) every element x of a head has a state h of n_state numbers:
 *     h[i] = exp(Δ · a[i]) · h[i] + Δ · b[i] · x,    y = Σ c[i] · h[i] + d · x
 */
#pragma once

#include <stddef.h>

struct run_scan {
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

/* out: [n][n_heads][width] without gaps; overlaps none of the inputs. Both work in parallel. */
void run_scan_mamba(struct run_scan *scan, const struct run_scan_rows *rows, size_t n, float *out);
void run_scan_mamba2(struct run_scan *scan, const struct run_scan_rows *rows, size_t n, float *out);
