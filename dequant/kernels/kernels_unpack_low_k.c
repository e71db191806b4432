/* Unpacking of Q2_K and Q3_K in vectors whose lanes are rows. dequant/blocks.h has the layouts. */
#include "dequant/blocks.h"
#include "dequant/kernels/row_products.h"
#include "dequant/kernels/words_panel.h"

SINK_UNPACKER(q2_k, 1, 128)
{
    const uint8_t *bytes = rows;
    const words two = words_all(0x03030303), four = words_all(0x0f0f0f0f);
    words v[4];

    words_load_16(bytes + sizeof(struct dequant_q2_k) - 16, row_bytes, v);
    simd_store(sink->panel->d[0], words_f16(v[3]));
    simd_store(sink->panel->m[0], words_negated(words_f16(words_right(v[3], 16))));
    words_load_16(bytes + offsetof(struct dequant_q2_k, scales), row_bytes, v);
    for (size_t i = 0; i < 4; i++) {
        put_four_scales(sink->panel, 4 * i, words_and(v[i], four), 0);
        put_four_mins(sink->panel, 4 * i, words_and(words_right(v[i], 4), four));
    }
    for (size_t half = 0; half < 2; half++) {
        /* Bits 0 and 1 of word w, and those 32, 64 and 96 elements on. */
        UNROLL
        for (size_t w = 0; w < 8; w++) {
            if (w % 4 == 0)
                words_load_16(bytes + offsetof(struct dequant_q2_k, qs) + 32 * half + 4 * w,
                              row_bytes, v);
            UNROLL
            for (size_t k = 0; k < 4; k++)
                sink_put(kind, sink, w + 8 * k,
                         words_and(words_right(v[w % 4], (int)(2 * k)), two));
        }
        sink_end_stage(kind, sink);
    }
}

/* d, the scales, and unless `zero` is 0 their products with it. */
INLINE void put_q3_k_scales(const uint8_t *bytes, size_t row_bytes, struct dequant_panel *panel,
                            unsigned zero)
{
    const words four = words_all(0x0f0f0f0f), high = words_all(0x30303030);
    words v[4], scales[4];

    words_load_16(bytes + sizeof(struct dequant_q3_k) - 16, row_bytes, v);
    simd_store(panel->d[0], words_f16(words_right(v[3], 16)));
    words_load_16(bytes + offsetof(struct dequant_q3_k, scales_high) - 12, row_bytes, v);
    scales[0] = words_or(words_and(v[1], four), words_and(words_left(v[3], 4), high));
    scales[1] = words_or(words_and(v[2], four), words_and(words_left(v[3], 2), high));
    scales[2] = words_or(words_and(words_right(v[1], 4), four), words_and(v[3], high));
    scales[3] =
        words_or(words_and(words_right(v[2], 4), four), words_and(words_right(v[3], 2), high));
    for (size_t i = 0; i < 4; i++)
        put_four_scales(panel, 4 * i, words_add_bytes(scales[i], words_all(0xe0e0e0e0)), zero);
}

#if defined(ROW_PRODUCTS)
INLINE void dot_q3_k(const uint8_t *block, size_t stage, const int8_t *x, simd_words sums[])
{
    const simd_words low = row_load(block + offsetof(struct dequant_q3_k, qs) + 32 * stage);
    const simd_words high = row_load(block + offsetof(struct dequant_q3_k, qh));

    UNROLL
    for (size_t i = 0; i < 4; i++) {
        const int right = 4 * (int)stage + (int)i - 2; /* of the third bits */
        const simd_words bit = right < 0 ? high << -right : high >> right;

        sums[i] =
            row_dot((low >> 2 * (int)i & 0x03030303) | (bit & 0x04040404), row_load(x + 32 * i));
    }
}
#endif

ROW_UNPACKER(q3_k, 1, 128, 128, put_q3_k_scales(rows, row_bytes, sink->panel, 0),
             dot_q3_k(block, stage, x, sums), 4, false, 4)
{
    const uint8_t *bytes = rows;
    const words two = words_all(0x03030303), third = words_all(0x04040404);
    words v[4], high[8];

    put_q3_k_scales(bytes, row_bytes, sink->panel, 4);
    words_load_16(bytes + offsetof(struct dequant_q3_k, qh), row_bytes, high);
    words_load_16(bytes + offsetof(struct dequant_q3_k, qh) + 16, row_bytes, high + 4);
    for (size_t half = 0; half < 2; half++) {
        UNROLL
        for (size_t w = 0; w < 8; w++) {
            if (w % 4 == 0)
                words_load_16(bytes + offsetof(struct dequant_q3_k, qs) + 32 * half + 4 * w,
                              row_bytes, v);
            UNROLL
            for (size_t k = 0; k < 4; k++) {
                const words low = words_and(words_right(v[w % 4], (int)(2 * k)), two);
                /* Bit k of the first half, bit k + 4 of the second one. */
                const words bit =
                    k < 2 ? words_left(high[w], (int)(2 - k)) : words_right(high[w], (int)(k - 2));

                sink_put(kind, sink, w + 8 * k, words_or(low, words_and(bit, third)));
            }
            high[w] = words_right(high[w], 4);
        }
        sink_end_stage(kind, sink);
    }
}
