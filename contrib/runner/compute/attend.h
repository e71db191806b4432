/*
 * Attention of new tokens to all before them (Vaswani et al. 2017), with what models add to it.
 */
#ifndef GGUFS_RUNNER_ATTEND_H
#define GGUFS_RUNNER_ATTEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Keys or values of all tokens so far: rows of `width` elements, all heads of a token. */
struct run_cache {
    bool is_f16; /* elements are halves, else floats */
    size_t width;
    size_t n_rows; /* allocated */
    void *rows;
};

/* Makes room for n_rows rows, keeping what is there. Returns 0 or -ENOMEM. */
int run_cache_reserve(struct run_cache *cache, size_t n_rows);
void run_cache_free(struct run_cache *cache);

/* Stores n rows of floats, `stride` from one to the next, from row `first` on; it has been
 * reserved. */
void run_cache_store(struct run_cache *cache, size_t first, const float *rows, size_t n,
                     size_t stride);

enum run_window {
    RUN_WINDOW_NONE,
    RUN_WINDOW_SLIDING, /* a token sees itself and the window - 1 tokens before it */
    RUN_WINDOW_CHUNKED, /* a token sees those before it in the same chunk of `window` tokens */
};

struct run_attention {
    uint32_t n_head;       /* of queries */
    uint32_t n_head_kv;    /* of keys and values; divides n_head: neighbours share one */
    uint32_t dim_k, dim_v; /* elements of a head's key (and query) and value */
    float scale;           /* what products of query and key are multiplied by */
    float softcap;         /* 0, or: scores become softcap · tanh(score/softcap) */
    float max_alibi;       /* 0, or ALiBi's largest bias (Press et al. 2021) */
    enum run_window window_kind;
    uint32_t window;
    const float *sinks; /* [n_head]: a score beside the others' that has no value; or NULL */
};

/*
 * For token i of n, at position first + i: out[i] = what its queries find among keys and values of
 * positions 0 to its own. queries: [n][n_head][dim_k], stride floats from token to token; out:
 * [n][n_head][dim_v] without gaps. Key head h is elements h · dim_k of a row, value head h elements
 * h · dim_v. Works in parallel. Returns 0 or -ENOMEM.
 */
int run_attend(const struct run_attention *attention, const float *queries, size_t stride,
               const struct run_cache *keys, const struct run_cache *values, size_t n, size_t first,
               float *out);

#endif
