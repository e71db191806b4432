/* The cache of keys and values. */
#include "contrib/runner/compute/kv_cache.h"
#include "dequant/slots.h"
#include "tests/unit/runner/run_numbers.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Element `at` of a row, by the description of struct run_cache. */
static float element(const struct run_cache *cache, size_t row, size_t at)
{
    const struct run_matrix tile =
        run_cache_tile(cache, row / RUN_TILE * RUN_TILE, at / cache->dim);
    const size_t r = row % RUN_TILE, c = at % cache->dim;
    const size_t index = cache->is_transposed ? c * RUN_TILE + r : r * cache->dim + c;
    float value;

    if (!tile.is_half)
        return ((const float *)tile.data)[index];
    dequant_scalar_f16((const uint16_t *)tile.data + index, &value, 1, (struct dequant_row){0});
    return value;
}

Test(run_kv_cache, keeps_its_rows_when_it_grows)
{
    uint64_t state = 3;
    float *rows = numbers_make(&state, 1, 300 * 7);

    for (int i = 0; i < 4; i++) {
        struct run_cache cache = {.type = i % 2 ? DEQUANT_F16 : DEQUANT_F32,
                                  .width = 6,
                                  .dim = 3,
                                  .is_transposed = i / 2};

        for (size_t row = 0; row < 300; row++) {
            cr_assert_eq(run_cache_reserve(&cache, row + 1), 0);
            cr_assert_eq(cache.n_rows, row < 256 ? 256u : 512u);
            run_cache_store(&cache, row, rows + row * 7, 1, 7);
        }
        for (size_t j = 0; j < 300 * 6; j++) {
            const float row = rows[j / 6 * 7 + j % 6];

            cr_expect_eq(element(&cache, j / 6, j % 6), i % 2 ? numbers_as_f16(row) : row);
        }
        run_cache_free(&cache);
        cr_expect_null(cache.rows);
        cr_expect_eq(cache.n_rows, 0u);
    }
    free(rows);
}

Test(run_kv_cache, keeps_the_rows_of_a_window)
{
    struct run_cache cache = {.width = 1, .dim = 1, .window = 250, .n_batch = 7};

    for (size_t row = 0; row < 2000; row++) {
        const float value = (float)row;

        cr_assert_eq(run_cache_reserve(&cache, row + 1), 0);
        cr_assert_eq(cache.n_rows, row < 256 ? 256u : 512u);
        run_cache_store(&cache, row, &value, 1, 1);
        for (size_t i = 0; i <= row && i < 257; i++)
            cr_assert_eq(element(&cache, row - i, 0), (float)(row - i));
    }
    run_cache_free(&cache);
}

Test(run_kv_cache, too_large)
{
    struct run_cache cache = {.width = SIZE_MAX / 8};

    cr_expect_eq(run_cache_reserve(&cache, 3), -ENOMEM);
    cache.width = 16;
    cr_expect_eq(run_cache_reserve(&cache, SIZE_MAX / 2), -ENOMEM);
    cr_expect_null(cache.rows);
    run_cache_free(&cache);
}

Test(run_kv_cache, q8_0_rounds_to_127_steps)
{
    struct run_cache cache = {.type = DEQUANT_Q8_0, .width = 96, .dim = 32};
    uint64_t state = 4;
    float *rows = numbers_make(&state, 3, 3 * 100), out[32];

    memset(rows + 100 + 32, 0, 32 * sizeof *rows);
    rows[100 + 64] = NAN;
    rows[200 + 64] = INFINITY;
    cr_assert_eq(run_cache_reserve(&cache, 3), 0);
    run_cache_store(&cache, 0, rows, 3, 100);
    for (size_t row = 0; row < 3; row++) {
        for (size_t at = 0; at < 96; at += 32) {
            const float *from = rows + row * 100 + at;
            float largest = 0;

            run_cache_load(&cache, row, at / 32, 32, out);
            for (size_t i = 0; i < 32; i++)
                largest = fmaxf(largest, fabsf(from[i]));
            for (size_t i = 0; i < 32; i++) {
                if (row > 0 && at == 64)
                    cr_expect(isnan(out[i]));
                else /* half a step, and the rounding of the scale to 11 bits */
                    cr_expect_leq(fabsf(out[i] - from[i]), largest * (0.5f / 127 + 0x1p-11f));
            }
        }
    }
    run_cache_free(&cache);
    free(rows);
}

Test(run_kv_cache, the_blocks_of_the_type_divide_a_head)
{
    cr_expect_eq(run_cache_type(DEQUANT_Q8_0, 64), DEQUANT_Q8_0);
    cr_expect_eq(run_cache_type(DEQUANT_Q8_0, 80), DEQUANT_F16);
    cr_expect_eq(run_cache_type(DEQUANT_F32, 3), DEQUANT_F32);
}
