/*
 * The cache of keys or values of all tokens so far, or of those that a window can show. It consists
 * of tiles of RUN_TILE positions; in a tile, each head's elements lie together.
 */
#pragma once

#include "contrib/runner/compute/run_kernels.h"
#include "dequant/types.h"

#include <stdint.h>

struct run_cache {
    uint32_t type; /* id: DEQUANT_F32, DEQUANT_F16 or DEQUANT_Q8_0 */
    size_t width;  /* of a row, which has the elements of all heads of a token */
    size_t dim;    /* of a head; a multiple of the type's block, divides width */
    /* F32 or F16: a head's elements are [dim][RUN_TILE], as products with keys use them, instead of
     * [RUN_TILE][dim]. */
    bool is_transposed;
    /* Rows are kept for this window and a batch of n_batch tokens, see gguf_cache_rows(): a later
     * row replaces an earlier one. 0: all rows are kept. */
    uint32_t window, n_batch;
    size_t n_rows; /* allocated */
    void *rows;
    struct run_cache *next; /* in its owner's list */
};

/*
 * Return the cache type for heads of n elements: `type`, or F16 if n is not a multiple of `type`'s
 * block.
 */
uint32_t run_cache_type(uint32_t type, size_t n);

/* Make room for n_rows rows; existing rows stay. Returns 0 or -ENOMEM. */
int run_cache_reserve(struct run_cache *cache, size_t n_rows);
void run_cache_free(struct run_cache *cache);

/* Return the bytes of the rows that are allocated. */
uint64_t run_cache_bytes(const struct run_cache *cache);

/*
 * Store n rows of floats, `stride` floats apart, from row `first` on. The rows must be reserved. In
 * Q8_0, a block with a NaN or an infinity becomes NaNs.
 */
void run_cache_store(struct run_cache *cache, size_t first, const float *rows, size_t n,
                     size_t stride);

/* Return a head's elements of the tile that begins at `row`. The type must be F32 or F16. */
struct run_matrix run_cache_tile(const struct run_cache *cache, size_t row, size_t head);

/* Decode n elements, whole blocks, of a head of a row. The cache must not be transposed. */
void run_cache_load(const struct run_cache *cache, size_t row, size_t head, size_t n, float *out);
