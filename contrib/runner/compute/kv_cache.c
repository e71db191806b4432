#include "contrib/runner/compute/kv_cache.h"

#include "dequant/kernels.h"
#include "gguf/support/cache_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint32_t run_cache_type(uint32_t type, size_t n)
{
    return n % dequant_type_by_id(type)->block_elements == 0 ? type : DEQUANT_F16;
}

/* Return the bytes of n elements. */
static size_t bytes_of(const struct run_cache *cache, size_t n)
{
    const struct dequant_type *type = dequant_type_by_id(cache->type);

    return n / type->block_elements * type->block_bytes;
}

int run_cache_reserve(struct run_cache *cache, size_t n_rows)
{
    const size_t capacity = gguf_cache_rows(n_rows, 0, 0);
    size_t n_bytes;
    void *larger;

    if (n_rows <= cache->n_rows)
        return 0;
    if (__builtin_mul_overflow(capacity, bytes_of(cache, cache->width), &n_bytes))
        return -ENOMEM;
    larger = realloc(cache->rows, n_bytes ? n_bytes : 1);
    if (!larger)
        return -ENOMEM;
    cache->rows = larger;
    cache->n_rows = capacity;
    return 0;
}

void run_cache_free(struct run_cache *cache)
{
    free(cache->rows);
    cache->rows = NULL;
    cache->n_rows = 0;
}

void run_cache_store(struct run_cache *cache, size_t first, const float *rows, size_t n,
                     size_t stride)
{
    const size_t row_bytes = bytes_of(cache, cache->width);
    uint8_t *to = (uint8_t *)cache->rows + first * row_bytes;

    for (size_t i = 0; i < n; i++, to += row_bytes, rows += stride) {
        if (cache->type == DEQUANT_F32)
            memcpy(to, rows, row_bytes);
        else
            dequant_encode(dequant_type_by_id(cache->type), rows, to, cache->width);
    }
}

const float *run_cache_floats(const struct run_cache *cache, size_t row, size_t at)
{
    return cache->type == DEQUANT_F32 ? (const float *)cache->rows + row * cache->width + at : NULL;
}

void run_cache_load(const struct run_cache *cache, size_t row, size_t at, size_t n, float *out)
{
    const struct dequant_type *type = dequant_type_by_id(cache->type);

    dequant_decode(type, (const uint8_t *)cache->rows + bytes_of(cache, row * cache->width + at),
                   out, n / type->block_elements);
}
