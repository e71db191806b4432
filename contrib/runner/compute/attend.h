/* Attention of new tokens to all earlier ones (Vaswani et al. 2017), with the models' variants. */
#pragma once

#include "contrib/runner/compute/kv_cache.h"
#include "contrib/runner/compute/top_k.h"

#include <stddef.h>
#include <stdint.h>

enum run_window {
    RUN_WINDOW_NONE,
    RUN_WINDOW_SLIDING, /* a token sees itself and the window - 1 tokens before it */
    RUN_WINDOW_CHUNKED, /* a token sees itself and the tokens before it in its chunk of `window` */
};

struct run_attention {
    uint32_t n_head;       /* of queries */
    uint32_t n_head_kv;    /* of keys and values; divides n_head: adjacent query heads share one */
    uint32_t dim_k, dim_v; /* elements of a head's key (and query) and value */
    float scale;           /* multiplies the products of query and key */
    float softcap;         /* scores become softcap · tanh(score/softcap); 0: unchanged */
    float max_alibi;       /* ALiBi's largest bias (Press et al. 2021); 0: no ALiBi */
    enum run_window window_kind;
    uint32_t window;
    const struct run_selection *selection; /* of this batch: tokens see only these positions,
                                              without window or ALiBi; or NULL */
    const float *sinks; /* [n_head], or NULL: an extra score without a value (attention sinks) */
};

/*
 * out[i] = attention of token i of n, at position first + i, to the keys and values of positions 0
 * to its own. queries: [n][n_head][dim_k], tokens `stride` floats apart; out: [n][n_head][dim_v]
 * without gaps. Key head h begins at element h · dim_k of a row, value head h at h · dim_v.
 *
 * The softmax runs over tiles of RUN_TILE positions, with a running maximum and sum (Milakov and
 * Gimelshein 2018, "Online normalizer calculation for softmax"), so memory does not grow with the
 * positions. Tiles begin at multiples of RUN_TILE, or of a list's elements, so a token's result
 * depends neither on the other tokens of the call nor on threads. Works in parallel. Returns 0 or
 * -ENOMEM.
 */
int run_attend(const struct run_attention *attention, const float *queries, size_t stride,
               const struct run_cache *keys, const struct run_cache *values, size_t n, size_t first,
               float *out);
