#include "contrib/runner/compute/kv_cache.h"

#include "dequant/kernels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t element_bytes(const struct run_cache *cache)
{
    return cache->is_f16 ? sizeof(uint16_t) : sizeof(float);
}

int run_cache_reserve(struct run_cache *cache, size_t n_rows)
{
    size_t capacity = cache->n_rows, n_bytes;
    void *larger;

    if (n_rows <= capacity)
        return 0;
    capacity = capacity + capacity / 2 > n_rows ? capacity + capacity / 2 : n_rows;
    if (__builtin_mul_overflow(capacity, cache->width * element_bytes(cache), &n_bytes))
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
    uint8_t *to = (uint8_t *)cache->rows + first * cache->width * element_bytes(cache);

    for (size_t i = 0; i < n; i++, to += cache->width * element_bytes(cache)) {
        if (cache->is_f16)
            dequant_encode(dequant_type_by_id(DEQUANT_F16), rows + i * stride, to, cache->width);
        else
            memcpy(to, rows + i * stride, cache->width * sizeof(float));
    }
}

const float *run_cache_floats(const struct run_cache *cache, size_t row, size_t at)
{
    return cache->is_f16 ? NULL : (const float *)cache->rows + row * cache->width + at;
}

void run_cache_load(const struct run_cache *cache, size_t row, size_t at, size_t n, float *out)
{
    const float *floats = run_cache_floats(cache, row, at);

    if (floats)
        memcpy(out, floats, n * sizeof *out);
    else
        dequant_decode(dequant_type_by_id(DEQUANT_F16),
                       (const uint16_t *)cache->rows + row * cache->width + at, out, n);
}
