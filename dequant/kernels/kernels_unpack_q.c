/*
 * Unpacking of types with a scale per 32 elements in vectors whose lanes are rows. dequant/blocks.h
 * has the layouts.
 */
#include "dequant/blocks.h"
#include "dequant/kernels/words.h"
#include "dequant/products.h"

enum { BLOCKS = DEQUANT_PANEL_ELEMENTS / DEQUANT_BLOCK };

/* Store the 32 elements of the nibbles of 16 bytes, with the fifth bits in `high` if it is there.
 */
static inline void put_nibbles(const void *qs, size_t row_bytes, const words *high,
                               uint8_t q[8][DEQUANT_PANEL_ROWS][4])
{
    const words four = words_all(0x0f0f0f0f);
    words bytes[4];

    words_load_16(qs, row_bytes, bytes);
    for (size_t i = 0; i < 4; i++) {
        words low_half = words_and(bytes[i], four);
        words high_half = words_and(words_right(bytes[i], 4), four);

        if (high) {
            low_half =
                words_or(low_half, words_left(words_spread(words_right(*high, (int)(4 * i))), 4));
            high_half = words_or(
                high_half, words_left(words_spread(words_right(*high, (int)(4 * i + 16))), 4));
        }
        words_store(q[i], low_half);
        words_store(q[4 + i], high_half);
    }
}

void SIMD_NAME(unpack_q4_0)(const void *rows, size_t row_bytes, struct dequant_panel *panel)
{
    const uint8_t *block = rows;

    for (size_t b = 0; b < BLOCKS; b++, block += sizeof(struct dequant_q4_0)) {
        words head[4];

        words_load_16(block, row_bytes, head);
        words_store_floats(panel->d[b], words_f16(head[0]));
        put_nibbles(block + offsetof(struct dequant_q4_0, qs), row_bytes, NULL, panel->q + 8 * b);
    }
}

void SIMD_NAME(unpack_q4_1)(const void *rows, size_t row_bytes, struct dequant_panel *panel)
{
    const uint8_t *block = rows;

    for (size_t b = 0; b < BLOCKS; b++, block += sizeof(struct dequant_q4_1)) {
        words head[4];

        words_load_16(block, row_bytes, head);
        words_store_floats(panel->d[b], words_f16(head[0]));
        words_store_floats(panel->m[b], words_f16(words_right(head[0], 16)));
        put_nibbles(block + offsetof(struct dequant_q4_1, qs), row_bytes, NULL, panel->q + 8 * b);
    }
}

void SIMD_NAME(unpack_q5_0)(const void *rows, size_t row_bytes, struct dequant_panel *panel)
{
    const uint8_t *block = rows;

    for (size_t b = 0; b < BLOCKS; b++, block += sizeof(struct dequant_q5_0)) {
        words head[4], high;

        words_load_16(block, row_bytes, head);
        words_store_floats(panel->d[b], words_f16(head[0]));
        high = words_or(words_right(head[0], 16), words_left(head[1], 16));
        put_nibbles(block + offsetof(struct dequant_q5_0, qs), row_bytes, &high, panel->q + 8 * b);
    }
}

void SIMD_NAME(unpack_q5_1)(const void *rows, size_t row_bytes, struct dequant_panel *panel)
{
    const uint8_t *block = rows;

    for (size_t b = 0; b < BLOCKS; b++, block += sizeof(struct dequant_q5_1)) {
        words head[4];

        words_load_16(block, row_bytes, head);
        words_store_floats(panel->d[b], words_f16(head[0]));
        words_store_floats(panel->m[b], words_f16(words_right(head[0], 16)));
        put_nibbles(block + offsetof(struct dequant_q5_1, qs), row_bytes, &head[1],
                    panel->q + 8 * b);
    }
}

void SIMD_NAME(unpack_q8_0)(const void *rows, size_t row_bytes, struct dequant_panel *panel)
{
    const words shift = words_all(0x80808080);
    const uint8_t *block = rows;

    for (size_t b = 0; b < BLOCKS; b++, block += sizeof(struct dequant_q8_0)) {
        words head[4], bytes[4];

        words_load_16(block, row_bytes, head);
        words_store_floats(panel->d[b], words_f16(head[0]));
        for (size_t half = 0; half < 2; half++) {
            words_load_16(block + offsetof(struct dequant_q8_0, qs) + 16 * half, row_bytes, bytes);
            for (size_t i = 0; i < 4; i++)
                words_store(panel->q[8 * b + 4 * half + i], words_xor(bytes[i], shift));
        }
    }
}
