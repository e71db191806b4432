/* The rows of a cache of keys and values, for both programs. */
#pragma once

#include <stdint.h>

/* Rows of keys and values are allocated so many at a time, as in llama.cpp. */
enum { GGUF_CACHE_ROWS = 256 };

/*
 * Return the number of rows that a layer allocates for n_tokens tokens: a row for each, but with a
 * window (0: none) at most the window and a batch of n_batch tokens, rounded up to
 * GGUF_CACHE_ROWS. ggufs-run and llama.cpp (n_swa, n_ubatch) allocate the same.
 */
static inline uint64_t gguf_cache_rows(uint64_t n_tokens, uint32_t window, uint32_t n_batch)
{
    const uint64_t most = (uint64_t)window + n_batch;

    if (window > 0 && n_tokens > most)
        n_tokens = most;
    return (n_tokens + GGUF_CACHE_ROWS - 1) / GGUF_CACHE_ROWS * GGUF_CACHE_ROWS;
}
