/*
 * The order of elements in a tensor of a GGUF file, and in the tensor elsewhere that it was made
 * from: in a checkpoint of transformers or a file from before GGUF. One description serves both
 * directions. Source: llama.cpp's conversion/.
 */
#pragma once

#include "gguf/support/strings.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Each is written "elsewhere -> GGUF", axes from the slowest to the fastest; axes in parentheses
 * are one dimension. PAIRS_Q of a head with 4 rows: rows 0 1 2 3 of the checkpoint are rows 0 2 1 3
 * in GGUF, since half 0 holds rows 0 1, half 1 rows 2 3, and GGUF alternates halves.
 */
enum gguf_order {
    GGUF_SAME_ORDER,
    /* another shape, the same order */
    GGUF_FLAT,      /* n -> any shape of n elements */
    GGUF_ONE_ROW,   /* 1 n -> n */
    GGUF_NO_MIDDLE, /* n 1 m -> n m */
    GGUF_THIRD,     /* 1 1 n 1 -> n */
    GGUF_BY_ROWS,   /* (expert row) column -> expert row column */
    /* permuted axes */
    GGUF_TRANSPOSED, /* [expert] column row -> [expert] row column */
    GGUF_BY_COLUMNS, /* (expert column) row -> expert row column */
    GGUF_PAIRS_Q,    /* (head half pair) column -> (head pair half) column */
    GGUF_PAIRS_K,    /* the same with the heads of keys */
    GGUF_HALVES_Q,   /* the rotated rows: (head pair half) column -> (head half pair) column */
    GGUF_HALVES_K,
    GGUF_VALUE_ROWS,    /* (k per_k width) column -> (per_k k width) column */
    GGUF_VALUE_COLUMNS, /* row (k per_k width) -> row (per_k k width) */
    /* groups of rows */
    GGUF_QKV_BY_HEAD,         /* head (q k v) column -> (all q, all k, all v) column */
    GGUF_QKV_BY_GROUP,        /* head of keys (its q, k, v) column -> the same */
    GGUF_VALUE_ROWS_AFTER_QK, /* (q k) as they are, then VALUE_ROWS */
    GGUF_VALUE_ROWS_OF_CONV,  /* the same, and NO_MIDDLE */
    /* two tensors of GGUF in one */
    GGUF_BOTH_ROWS,    /* (2 row) column -> row column, row column; also without columns */
    GGUF_BOTH_EXPERTS, /* expert (2 row) column -> the same with experts */
    GGUF_BOTH_COLUMNS, /* expert column (2 row) -> expert row column, expert row column */
    GGUF_ALTERNATING,  /* expert [column] (row 2) -> expert row [column], expert row [column] */
    GGUF_QKVZ_BY_HEAD, /* k (q, k, per_k v, per_k z) column -> (all q, all k, all v) column, all z
                        */
    GGUF_LATENT_KV,    /* (head (key, value)) rank -> head rank key, head value rank */
    GGUF_N_ORDERS
};

/* Return true for an order of rows of q, k or v, which tensor_data_layout changes. */
static inline bool gguf_order_is_layout(enum gguf_order order)
{
    return order == GGUF_PAIRS_Q || order == GGUF_PAIRS_K || order == GGUF_QKV_BY_HEAD ||
           order == GGUF_QKV_BY_GROUP;
}

/* Numbers of a model that orders depend on. Any value is accepted; 0: unknown. */
struct gguf_order_sizes {
    uint64_t n_head, n_head_kv;
    uint64_t n_rot;        /* rotated rows of a head; 0: as many as the shape says */
    uint64_t width;        /* rows of a head; 0: as many as the shape says */
    uint64_t n_k, width_k; /* heads of keys of linear attention, and their width */
    uint64_t n_v, width_v; /* heads of values, a multiple of n_k */
};

#define GGUF_ORDER_DIMS     4
#define GGUF_ORDER_AXES     5
#define GGUF_ORDER_SEGMENTS 4

struct gguf_order_shape {
    unsigned n_dims;
    uint64_t size[GGUF_ORDER_DIMS]; /* the slowest first */
};

struct gguf_order_axis {
    uint64_t size;
    uint64_t here, there; /* strides in elements, in GGUF and elsewhere */
};

/* Elements whose position on both sides is a sum over the same axes. */
struct gguf_order_segment {
    unsigned tensor;      /* in GGUF: the first one, or 1: the second */
    uint64_t here, there; /* position of the first element in GGUF, and elsewhere */
    unsigned n_axes;
    struct gguf_order_axis axes[GGUF_ORDER_AXES]; /* none has one element */
};

/* Each element of either side is in exactly one segment. Segments and axes are in order elsewhere.
 */
struct gguf_placement {
    struct gguf_order_shape here[2], there; /* here[1] only if two tensors become one */
    unsigned n_segments;
    struct gguf_order_segment segments[GGUF_ORDER_SEGMENTS];
};

/* Find the placement by the shapes in GGUF. Returns 0, or -EINVAL if shapes and sizes do not fit.
 */
int gguf_order_from_here(enum gguf_order order, const struct gguf_order_sizes *sizes,
                         const struct gguf_order_shape here[2], struct gguf_placement *placement);

/* Return the order that a naming calls "pairs_q" for GGUF_PAIRS_Q; GGUF_N_ORDERS: none. */
enum gguf_order gguf_order_find(struct gguf_string name);

/* Return true if the order makes one tensor of two in GGUF. */
bool gguf_order_joins(enum gguf_order order);
