/*
 * The inner loops of attention, recurrences and activations. The sources in contrib/runner/kernels/
 * are compiled once per kernel set of dequant/sets.h, "scalar" included. All sets give the same
 * bits.
 */
#pragma once

#include "dequant/dot.h"
#include "dequant/sets.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    RUN_LANES = DEQUANT_DOT_LANES, /* columns come in multiples of this */
    RUN_TILE = 64,                 /* positions of a tile of attention */
};

/* A matrix in rows, `stride` elements apart, of floats or F16. */
struct run_matrix {
    const void *data;
    size_t stride;
    bool is_half;
    size_t ahead; /* bytes from an element to one that is needed after this product; 0: unknown */
};

/*
 * Multiply matrices: out[r][c] += Σ a[r][i] · b[i][c] for i < n, one fused multiply-add after the
 * other. Strides are in floats from row to row; n_columns is a multiple of RUN_LANES.
 */
typedef void run_add_products_fn(const float *a, size_t a_stride, size_t n_rows,
                                 struct run_matrix b, size_t n, size_t n_columns, float *out,
                                 size_t out_stride);

/* out[c][r] = rows[r][c] for RUN_LANES rows and n_columns columns, a multiple of RUN_LANES. */
typedef void run_transpose_fn(const float *rows, size_t stride, size_t n_columns, float *out,
                              size_t out_stride);

/* Conversion of products of a query and keys to scores; see struct run_attention. */
struct run_scoring {
    float scale, softcap;
    float slope; /* of ALiBi; 0: none */
};

/* The softmax of a query over the tiles so far. Begins with {-INFINITY, 0}. */
struct run_softmax {
    float highest; /* score */
    double sum;    /* of exp(score - highest) */
};

/*
 * Turn the products scores[begin] to scores[end - 1] of a query and a tile of keys into weights
 * exp(score - highest), and include them in the softmax; begin < end. The key of scores[i] is
 * `distance` - i positions before the query. Other elements in the same groups of RUN_LANES become
 * 0. Returns the factor for the sums of the tiles before.
 */
typedef float run_weigh_fn(float scores[RUN_TILE], size_t begin, size_t end, float distance,
                           const struct run_scoring *scoring, struct run_softmax *softmax);

/*
 * Functions of n elements in place; n is a multiple of RUN_LANES. Errors are below 1, 3 and 3 ulp.
 * exp() below 2^-126 is 0, and so is the sigmoid, 1 / (1 + exp(-x)).
 */
typedef void run_vector_function_fn(float *x, size_t n);
typedef run_vector_function_fn run_exponentials_fn, run_sigmoids_fn, run_tangents_fn; /* tanh */

/* gate[i] = gate[i] · sigmoid(gate[i]) · up[i] for n elements, a multiple of RUN_LANES. */
typedef void run_silu_gates_fn(float *gate, const float *up, size_t n);

/*
 * The recurrences. A state is a matrix: n_rows rows, `stride` floats apart, one for each element of
 * a key, and a column for each element of a value or result. Each kernel computes one token for
 * n_columns columns; the formulas are in the headers of compute/.
 */
struct run_delta_token { /* recurrences.h */
    size_t n_rows;
    const float *q, *k, *v;
    const float *decay; /* of row i: decay[i · decay_stride] */
    size_t decay_stride;
    float beta;
};
typedef void run_delta_step_fn(float *state, size_t stride, size_t n_columns,
                               const struct run_delta_token *token, float *out);

struct run_wkv_token { /* struct run_wkv_input in recurrences.h */
    size_t n_rows;
    const float *r, *k, *v, *w, *u, *a, *b;
};
typedef void run_wkv_step_fn(float *state, size_t stride, size_t n_columns,
                             const struct run_wkv_token *token, float *out);
typedef run_wkv_step_fn run_wkv6_step_fn, run_wkv7_step_fn, run_linear_step_fn;

struct run_scan_token { /* recurrences.h; Mamba 2 */
    size_t n_rows;
    const float *x, *b, *c;
    float step, decay, d;
};
typedef void run_scan_step_fn(float *state, size_t stride, size_t n_columns,
                              const struct run_scan_token *token, float *out);

/* Compute a token of Mamba for a channel with n states. Returns y without the part of d. */
typedef float run_scan_channel_fn(float *state, size_t n, const float *a, const float *b,
                                  const float *c, float step, float x);

/* Compute a token of RWKV 4 for n channels. */
typedef void run_wkv4_step_fn(float *numerators, float *denominators, float *exponents, size_t n,
                              const float *w, const float *u, const float *k, const float *v,
                              float *out);

/* Expands DO(set, name) for every kernel. */
#define RUN_KERNELS(DO, set)                                                                       \
    DO(set, add_products)                                                                          \
    DO(set, transpose)                                                                             \
    DO(set, weigh)                                                                                 \
    DO(set, exponentials)                                                                          \
    DO(set, sigmoids)                                                                              \
    DO(set, tangents)                                                                              \
    DO(set, silu_gates)                                                                            \
    DO(set, delta_step)                                                                            \
    DO(set, wkv6_step)                                                                             \
    DO(set, wkv7_step)                                                                             \
    DO(set, linear_step) DO(set, scan_step) DO(set, scan_channel) DO(set, wkv4_step)

/* The slot's `name` declares a member. NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define RUN_KERNEL_SLOT(unused, name)  run_##name##_fn *name;
#define RUN_DECLARE_KERNEL(set, name)  run_##name##_fn run_##set##_##name;
#define RUN_DECLARE_KERNELS(set, name) RUN_KERNELS(RUN_DECLARE_KERNEL, set)

struct run_kernels {
    RUN_KERNELS(RUN_KERNEL_SLOT, )
};

RUN_DECLARE_KERNELS(scalar, )
DEQUANT_VECTOR_SETS(RUN_DECLARE_KERNELS, )

/* The kernels of each set, by the indices of dequant/sets.h. */
extern const struct run_kernels run_kernel_sets[DEQUANT_SETS];

/* The kernels of the set that dequant_choose_kernels() chose. */
const struct run_kernels *run_kernels(void);
