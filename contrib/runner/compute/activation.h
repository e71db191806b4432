/* Activation functions. */
#pragma once

#include <stddef.h>

enum run_activation {
    RUN_SILU,         /* x · sigmoid(x) */
    RUN_GELU,         /* by tanh: x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))) */
    RUN_GELU_ERF,     /* x/2 · (1 + erf(x/√2)) */
    RUN_RELU,         /* max(x, 0) */
    RUN_RELU_SQUARED, /* max(x, 0)² */
    RUN_SWIGLU_OAI, /* gated only, gpt-oss: g · sigmoid(1.702 g) · (u + 1), g ≤ 7, |u| ≤ 7 */
    RUN_XIELU,      /* Huang et al. 2024, see struct run_xielu */
    RUN_SIGMOID,    /* 1 / (1 + exp(-x)) */
    RUN_TANH,
    RUN_IDENTITY, /* x */
};

/* The parameters of xIELU. */
struct run_xielu {
    float alpha_n, alpha_p, beta, epsilon;
};

float run_sigmoid(float x);
float run_softplus(float x);

/* x[i] = f(x[i]) for n floats. `xielu` is used by RUN_XIELU only. Works in parallel. */
void run_activate(enum run_activation activation, const struct run_xielu *xielu, float *x,
                  size_t n);

/* gate[i] = f(gate[i]) · up[i]. Works in parallel. */
void run_activate_gated(enum run_activation activation, float *gate, const float *up, size_t n);

/* The same, with `up` clamped to ±limit and f(gate) to at most limit, unless it is 0. */
void run_activate_gated_clamped(enum run_activation activation, float limit, float *gate,
                                const float *up, size_t n);

/* x = max(x - threshold, 0), where the threshold of each row of `width` floats is its mean plus
 * `factor` standard deviations (Gemma 3n's gaussian_topk). */
void run_gaussian_top_k(float factor, float *x, size_t n_rows, size_t width);

/* Return the index of the highest of n numbers, the first if several are equal; 0 if n is 0. */
size_t run_find_highest(const float *x, size_t n);

/* Apply softmax to n floats in place. */
void run_softmax(float *x, size_t n);
