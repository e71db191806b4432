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
    const size_t capacity = gguf_cache_rows(n_rows, cache->window, cache->n_batch);
    size_t n_bytes;
    void *larger;

    if (capacity <= cache->n_rows)
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

uint64_t run_cache_bytes(const struct run_cache *cache)
{
    return cache->n_rows * bytes_of(cache, cache->width);
}

/* Return the address of element `at` of a head's tile that contains the row. */
static uint8_t *address_of(const struct run_cache *cache, size_t row, size_t head, size_t at)
{
    const size_t tile = row % cache->n_rows / RUN_TILE * RUN_TILE;

    return (uint8_t *)cache->rows +
           bytes_of(cache, tile * cache->width + head * RUN_TILE * cache->dim + at);
}

/* Store a head of up to RUN_TILE rows of a tile as columns. */
static void store_columns(struct run_cache *cache, size_t first, size_t head, const float *rows,
                          size_t n, size_t stride)
{
    uint16_t half[RUN_TILE];

    for (size_t i = 0; i < n; i++, rows += stride) {
        uint8_t *to = address_of(cache, first, head, (first + i) % RUN_TILE);

        for (size_t at = 0; at < cache->dim; at += RUN_TILE) {
            const size_t n_elements = cache->dim - at < RUN_TILE ? cache->dim - at : RUN_TILE;

            if (cache->type == DEQUANT_F32) {
                for (size_t j = 0; j < n_elements; j++)
                    ((float *)(void *)to)[(at + j) * RUN_TILE] = rows[at + j];
                continue;
            }
            dequant_encode(dequant_type_by_id(cache->type), rows + at, half, n_elements);
            for (size_t j = 0; j < n_elements; j++)
                ((uint16_t *)(void *)to)[(at + j) * RUN_TILE] = half[j];
        }
    }
}

static void store_rows(struct run_cache *cache, size_t first, size_t head, const float *rows,
                       size_t n, size_t stride)
{
    for (size_t i = 0; i < n; i++, rows += stride) {
        uint8_t *to = address_of(cache, first, head, (first + i) % RUN_TILE * cache->dim);

        if (cache->type == DEQUANT_F32)
            memcpy(to, rows, cache->dim * sizeof *rows);
        else
            dequant_encode(dequant_type_by_id(cache->type), rows, to, cache->dim);
    }
}

void run_cache_store(struct run_cache *cache, size_t first, const float *rows, size_t n,
                     size_t stride)
{
    for (size_t i = 0, n_now; i < n; i += n_now, first += n_now, rows += n_now * stride) {
        const size_t left = RUN_TILE - first % RUN_TILE;

        n_now = n - i < left ? n - i : left;
        for (size_t head = 0; head * cache->dim < cache->width; head++)
            (cache->is_transposed ? store_columns : store_rows)(
                cache, first, head, rows + head * cache->dim, n_now, stride);
    }
}

struct run_matrix run_cache_tile(const struct run_cache *cache, size_t row, size_t head)
{
    return (struct run_matrix){
        .data = address_of(cache, row, head, 0),
        .stride = cache->is_transposed ? RUN_TILE : cache->dim,
        .is_half = cache->type == DEQUANT_F16,
        .ahead = bytes_of(cache, RUN_TILE * cache->width), /* the next tile */
    };
}

void run_cache_load(const struct run_cache *cache, size_t row, size_t head, size_t n, float *out)
{
    const struct dequant_type *type = dequant_type_by_id(cache->type);

    dequant_decode(type, address_of(cache, row, head, row % RUN_TILE * cache->dim), out,
                   n / type->block_elements);
}
