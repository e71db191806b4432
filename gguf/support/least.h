/* The lesser of two numbers. */
#ifndef GGUFS_GGUF_LEAST_H
#define GGUFS_GGUF_LEAST_H

#include <stdint.h>

static inline uint64_t gguf_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

#endif
