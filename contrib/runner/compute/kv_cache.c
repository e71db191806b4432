#include "contrib/runner/compute/kv_cache.h"

#include "dequant/blocks.h"
#include "dequant/kernels.h"

#include <errno.h>
#include <math.h>
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
    size_t capacity = cache->n_rows, n_bytes;
    void *larger;

    if (n_rows <= capacity)
        return 0;
    capacity = capacity + capacity / 2 > n_rows ? capacity + capacity / 2 : n_rows;
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

/* The scale is that of ggml: the largest magnitude becomes 127. */
/* The greatest f16; greater elements are clipped. */
#define MOST_SCALE 65504.0F
/* Elements that are all smaller become 0. */
#define LEAST_MAGNITUDE 1e-30F

static void store_q8_0(const float *row, size_t width, struct dequant_q8_0 *to)
{
    for (; width > 0; width -= DEQUANT_BLOCK, row += DEQUANT_BLOCK, to++) {
        float largest = 0, scale, inverse;
        bool is_finite = true;

        for (size_t i = 0; i < DEQUANT_BLOCK; i++) {
            largest = fmaxf(largest, fabsf(row[i]));
            is_finite &= isfinite(row[i]) != 0;
        }
        scale = is_finite ? largest / 127 : NAN;
        if (scale > MOST_SCALE)
            scale = MOST_SCALE;
        /* As an f16, such a scale is 0. */
        inverse = largest > LEAST_MAGNITUDE ? 1 / scale : 0;
        dequant_encode(dequant_type_by_id(DEQUANT_F16), &scale, &to->d, 1);
        for (size_t i = 0; i < DEQUANT_BLOCK; i++)
            to->qs[i] = is_finite ? (int8_t)fmaxf(-127, fminf(127, roundf(row[i] * inverse))) : 1;
    }
}

void run_cache_store(struct run_cache *cache, size_t first, const float *rows, size_t n,
                     size_t stride)
{
    const size_t row_bytes = bytes_of(cache, cache->width);
    uint8_t *to = (uint8_t *)cache->rows + first * row_bytes;

    for (size_t i = 0; i < n; i++, to += row_bytes, rows += stride) {
        if (cache->type == DEQUANT_F32)
            memcpy(to, rows, row_bytes);
        else if (cache->type == DEQUANT_Q8_0)
            store_q8_0(rows, cache->width, (struct dequant_q8_0 *)to);
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
