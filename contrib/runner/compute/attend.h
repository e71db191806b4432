/*
 * Attention of new tokens to all earlier tokens (Vaswani et al. 2017), with the variations in
 * models.
 */
#ifndef GGUFS_RUNNER_ATTEND_H
#define GGUFS_RUNNER_ATTEND_H

#include "contrib/runner/compute/selection.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Keys or values of all tokens so far. A row has `width` elements: all heads of a token. */
struct run_cache {
    bool is_f16; /* elements are halves, else floats */
    size_t width;
    size_t n_rows; /* allocated */
    void *rows;
};

/* Make room for n_rows rows; existing rows stay. Returns 0 or -ENOMEM. */
int run_cache_reserve(struct run_cache *cache, size_t n_rows);
void run_cache_free(struct run_cache *cache);

/* Store n rows of floats, `stride` floats apart, from row `first` on. The rows must be reserved. */
void run_cache_store(struct run_cache *cache, size_t first, const float *rows, size_t n,
                     size_t stride);

enum run_window {
    RUN_WINDOW_NONE,
    RUN_WINDOW_SLIDING, /* a token sees itself and the window - 1 tokens before it */
    RUN_WINDOW_CHUNKED, /* a token sees those before it in the same chunk of `window` tokens */
};

struct run_attention {
    uint32_t n_head;       /* of queries */
    uint32_t n_head_kv;    /* of keys and values; divides n_head: adjacent query heads share one */
    uint32_t dim_k, dim_v; /* elements of a head's key (and query) and value */
    float scale;           /* multiplies the products of query and key */
    float softcap;         /* 0, or: scores become softcap · tanh(score/softcap) */
    float max_alibi;       /* 0, or ALiBi's largest bias (Press et al. 2021) */
    enum run_window window_kind;
    uint32_t window;
    const struct run_selection *selection; /* of this batch: tokens see only these positions,
                                              without window or ALiBi; or NULL */
    const float *sinks; /* [n_head], or NULL: an extra score without a value (attention sinks) */
};

/*
 * out[i] = attention of token i of n, at position first + i, to the keys and values of positions 0
 * to its own. queries: [n][n_head][dim_k], tokens `stride` floats apart; out: [n][n_head][dim_v]
 * without gaps. Key head h begins at element h · dim_k of a row, value head h at h · dim_v. Works
 * in parallel. Returns 0 or -ENOMEM.
 */
int run_attend(const struct run_attention *attention, const float *queries, size_t stride,
               const struct run_cache *keys, const struct run_cache *values, size_t n, size_t first,
               float *out);

#endif
