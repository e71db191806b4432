/*
 * Unpacking of the types of up to two bits in vectors whose lanes are rows. dequant/blocks.h has
 * the layouts.
 */
#include "dequant/blocks.h"
#include "dequant/kernels/words_panel.h"
#include "dequant/kernels/words_runs.h"

static inline void put_ternary_scales(struct dequant_panel *panel, words d)
{
    const words ones = words_all(1 << 16 | 1);

    words_store_floats(panel->d[0], words_f16(d));
    for (size_t g = 0; g < 8; g++)
        words_store(panel->scales[g][0], ones);
    for (size_t g = 0; g < 8; g += 2)
        words_store(panel->mins[g / 2][0], ones);
}

void SIMD_NAME(unpack_tq2_0)(const void *rows, size_t row_bytes, struct dequant_panel *panel)
{
    const uint8_t *bytes = rows;
    const words two = words_all(0x03030303);
    words v[4];

    words_load_16(bytes + sizeof(struct dequant_tq2_0) - 16, row_bytes, v);
    put_ternary_scales(panel, words_right(v[3], 16));
    for (size_t i = 0; i < 16; i++) {
        if (i % 4 == 0)
            words_load_16(bytes + 4 * i, row_bytes, v);
        for (size_t k = 0; k < 4; k++)
            words_store(panel->q[i / 8 * 32 + i % 8 + 8 * k][0],
                        words_and(words_right(v[i % 4], (int)(2 * k)), two));
    }
}

/* Store the n digits of the bytes to each stride-th integer. */
static inline void put_digits(uint8_t (*q)[DEQUANT_PANEL_ROWS][4], words bytes, size_t n,
                              size_t stride)
{
    const words low = words_all(0x00ff00ff);
    words even = words_and(bytes, low), odd = words_and(words_right(bytes, 8), low);

    for (size_t k = 0; k < n; k++) {
        even = words_add(even, words_left(even, 1));
        odd = words_add(odd, words_left(odd, 1));
        words_store(q[k * stride], words_or(words_and(words_right(even, 8), words_all(0x00030003)),
                                            words_and(odd, words_all(0x03000300))));
        even = words_and(even, low);
        odd = words_and(odd, low);
    }
}

void SIMD_NAME(unpack_tq1_0)(const void *rows, size_t row_bytes, struct dequant_panel *panel)
{
    const uint8_t *bytes = rows;
    words v[4];

    words_load_16(bytes + sizeof(struct dequant_tq1_0) - 16, row_bytes, v);
    put_ternary_scales(panel, words_right(v[3], 16));
    for (size_t i = 0; i < 12; i++) {
        if (i % 4 == 0)
            words_load_16(bytes + 4 * i, row_bytes, v);
        if (i < 8)
            put_digits(panel->q + i, v[i % 4], 5, 8);
        else
            put_digits(panel->q + 40 + i - 8, v[i % 4], 5, 4);
    }
    words_load_16(bytes + offsetof(struct dequant_tq1_0, tail) - 12, row_bytes, v);
    put_digits(panel->q + 60, v[3], 4, 1);
}

/* Store d of n spans: the lower half of the lanes. */
static inline void put_spans(struct dequant_panel *panel, size_t first, size_t n, words d)
{
    for (size_t i = first; i < first + n; i++)
        words_store_floats(panel->d[i], words_f16(d));
}

void SIMD_NAME(unpack_q1_0)(const void *rows, size_t row_bytes, struct dequant_panel *panel)
{
    const words ones = words_all(0x01010101), all = words_all(0xffffffff);

    for (size_t b = 0; b < 2; b++) {
        const uint8_t *block = (const uint8_t *)rows + b * sizeof(struct dequant_q1_0);
        words v[4];

        words_load_16(block, row_bytes, v);
        put_spans(panel, 4 * b, 4, v[0]);
        words_load_16(block + offsetof(struct dequant_q1_0, qs), row_bytes, v);
        for (size_t i = 0; i < 4; i++) {
            /* A set bit means plus. */
            const words minus = words_xor(v[i], all);

            for (unsigned k = 0; k < 8; k++)
                words_store(panel->q[32 * b + 8 * i + k][0], words_signed(ones, minus, k, 1));
        }
    }
}

void SIMD_NAME(unpack_q2_0)(const void *rows, size_t row_bytes, struct dequant_panel *panel)
{
    for (size_t b = 0; b < 4; b++) {
        const uint8_t *block = (const uint8_t *)rows + b * sizeof(struct dequant_q2_0);
        words v[4];

        words_load_16(block, row_bytes, v);
        put_spans(panel, 2 * b, 2, v[0]);
        words_load_16(block + offsetof(struct dequant_q2_0, qs), row_bytes, v);
        for (size_t i = 0; i < 16; i++) {
            words q = words_byte(v[i / 4], i % 4);

            q = words_or(q, words_left(q, 12));
            q = words_or(q, words_left(q, 6));
            words_store(panel->q[16 * b + i][0], words_and(q, words_all(0x03030303)));
        }
    }
}
