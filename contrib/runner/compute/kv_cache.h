/* The cache of keys or values of all tokens so far. */
#pragma once

#include "dequant/types.h"

#include <stddef.h>
#include <stdint.h>

/* A row has `width` elements: all heads of a token. */
struct run_cache {
    uint32_t type; /* id: DEQUANT_F32, DEQUANT_F16 or DEQUANT_Q8_0 */
    size_t width;  /* a multiple of the type's block */
    size_t n_rows; /* allocated */
    void *rows;
};

/*
 * Return the cache type for heads of n elements: `type`, or F16 if n is not a multiple of `type`'s
 * block.
 */
uint32_t run_cache_type(uint32_t type, size_t n);

/* Make room for gguf_cache_rows(n_rows) rows; existing rows stay. Returns 0 or -ENOMEM. */
int run_cache_reserve(struct run_cache *cache, size_t n_rows);
void run_cache_free(struct run_cache *cache);

/*
 * Store n rows of floats, `stride` floats apart, from row `first` on. The rows must be reserved. In
 * Q8_0, a block with a NaN or an infinity becomes NaNs.
 */
void run_cache_store(struct run_cache *cache, size_t first, const float *rows, size_t n,
                     size_t stride);

/*
 * Return element `at` of a row if the elements are floats, else NULL. Rows are `width` floats
 * apart.
 */
const float *run_cache_floats(const struct run_cache *cache, size_t row, size_t at);

/* Decode n elements of a row from `at` on; both are whole blocks. */
void run_cache_load(const struct run_cache *cache, size_t row, size_t at, size_t n, float *out);
