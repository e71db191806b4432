/*
 * Unpacking of the K types in vectors whose lanes are rows: 16 bytes of each row become four
 * vectors of 32 bits, which are then taken apart for all rows at once. dequant/blocks.h has the
 * layouts.
 */
#include "dequant/blocks.h"
#include "dequant/kernels/row_products.h"
#include "dequant/kernels/words_panel.h"

/* d, m and the scales and minima of Q4_K and Q5_K, the first 16 bytes of their blocks. */
INLINE void put_k_scales(const void *rows, size_t row_bytes, struct dequant_panel *panel)
{
    const words four = words_all(0x0f0f0f0f), six = words_all(0x3f3f3f3f);
    words head[4], high_scales, high_mins;

    words_load_16(rows, row_bytes, head);
    simd_store(panel->d[0], words_f16(head[0]));
    simd_store(panel->m[0], words_negated(words_f16(words_right(head[0], 16))));
    high_scales = words_and(words_right(head[1], 2), words_all(0x30303030));
    high_mins = words_and(words_right(head[2], 2), words_all(0x30303030));
    put_four_scales(panel, 0, words_and(head[1], six), 0);
    put_four_mins(panel, 0, words_and(head[2], six));
    put_four_scales(panel, 4, words_or(words_and(head[3], four), high_scales), 0);
    put_four_mins(panel, 4, words_or(words_and(words_right(head[3], 4), four), high_mins));
}

#if defined(ROW_PRODUCTS)
INLINE void dot_q4_k(const uint8_t *block, size_t stage, const int8_t *x, simd_words sums[])
{
    const simd_words q = row_load(block + offsetof(struct dequant_q4_k, qs) + 32 * stage);

    sums[0] = row_dot(q & 0x0f0f0f0f, row_load(x));
    sums[1] = row_dot(q >> 4 & 0x0f0f0f0f, row_load(x + 32));
}

INLINE void dot_q5_k(const uint8_t *block, size_t stage, const int8_t *x, simd_words sums[])
{
    const simd_words q = row_load(block + offsetof(struct dequant_q5_k, qs) + 32 * stage);
    const simd_words high = row_load(block + offsetof(struct dequant_q5_k, qh));
    const int left = 4 - 2 * (int)stage; /* of the fifth bits */
    const simd_words first = left >= 0 ? high << left : high >> -left;
    const simd_words second = left > 0 ? high << (left - 1) : high >> (1 - left);

    sums[0] = row_dot((q & 0x0f0f0f0f) | (first & 0x10101010), row_load(x));
    sums[1] = row_dot((q >> 4 & 0x0f0f0f0f) | (second & 0x10101010), row_load(x + 32));
}
#endif

ROW_UNPACKER(q4_k, 1, 64, 64, put_k_scales(rows, row_bytes, sink->panel),
             dot_q4_k(block, stage, x, sums), 2, false, 0)
{
    const uint8_t *qs = (const uint8_t *)rows + offsetof(struct dequant_q4_k, qs);
    const words four = words_all(0x0f0f0f0f);

    put_k_scales(rows, row_bytes, sink->panel);
    for (size_t i = 0; i < 4; i++) {
        /* Byte l of 32 holds elements l and l + 32 of 64. */
        UNROLL
        for (size_t half = 0; half < 2; half++) {
            words bytes[4];

            words_load_16(qs + 32 * i + 16 * half, row_bytes, bytes);
            UNROLL
            for (size_t j = 0; j < 4; j++) {
                sink_put(kind, sink, 4 * half + j, words_and(bytes[j], four));
                sink_put(kind, sink, 8 + 4 * half + j, words_and(words_right(bytes[j], 4), four));
            }
        }
        sink_end_stage(kind, sink);
    }
}

ROW_UNPACKER(q5_k, 1, 64, 64, put_k_scales(rows, row_bytes, sink->panel),
             dot_q5_k(block, stage, x, sums), 2, false, 0)
{
    const uint8_t *qs = (const uint8_t *)rows + offsetof(struct dequant_q5_k, qs);
    const uint8_t *qh = (const uint8_t *)rows + offsetof(struct dequant_q5_k, qh);
    const words four = words_all(0x0f0f0f0f), fifth = words_all(0x10101010);
    words high[8];

    put_k_scales(rows, row_bytes, sink->panel);
    words_load_16(qh, row_bytes, high);
    words_load_16(qh + 16, row_bytes, high + 4);
    for (size_t i = 0; i < 4; i++) {
        UNROLL
        for (size_t half = 0; half < 2; half++) {
            words bytes[4];

            words_load_16(qs + 32 * i + 16 * half, row_bytes, bytes);
            UNROLL
            for (size_t j = 0; j < 4; j++) {
                /* Bits 2i and 2i + 1 belong to the elements of these two groups. */
                words *bits = &high[4 * half + j];

                sink_put(
                    kind, sink, 4 * half + j,
                    words_or(words_and(bytes[j], four), words_and(words_left(*bits, 4), fifth)));
                sink_put(kind, sink, 8 + 4 * half + j,
                         words_or(words_and(words_right(bytes[j], 4), four),
                                  words_and(words_left(*bits, 3), fifth)));
                *bits = words_right(*bits, 2);
            }
        }
        sink_end_stage(kind, sink);
    }
}

/* d, the scales, and unless `zero` is 0 their products with it. */
INLINE void put_q6_k_scales(const uint8_t *block, size_t row_bytes, struct dequant_panel *panel,
                            unsigned zero)
{
    words v[4];

    words_load_16(block + offsetof(struct dequant_q6_k, scales), row_bytes, v);
    for (size_t i = 0; i < 4; i++)
        put_four_scales(panel, 4 * i, v[i], zero);
    words_load_16(block + sizeof(struct dequant_q6_k) - 16, row_bytes, v);
    simd_store(panel->d[0], words_f16(words_right(v[3], 16)));
}

#if defined(ROW_PRODUCTS)
INLINE void dot_q6_k(const uint8_t *block, size_t stage, const int8_t *x, simd_words sums[])
{
    const simd_words high = row_load(block + offsetof(struct dequant_q6_k, qh) + 32 * stage);

    UNROLL
    for (size_t i = 0; i < 4; i++) {
        const simd_words low = row_load(block + 64 * stage + 32 * (i % 2)) >> (i < 2 ? 0 : 4);
        const simd_words bits = i < 2 ? high << (4 - 2 * (int)i) : high >> (2 * (int)i - 4);

        sums[i] = row_dot((low & 0x0f0f0f0f) | (bits & 0x30303030), row_load(x + 32 * i));
    }
}
#endif

ROW_UNPACKER(q6_k, 1, 128, 128, put_q6_k_scales(rows, row_bytes, sink->panel, 0),
             dot_q6_k(block, stage, x, sums), 4, false, 32)
{
    const uint8_t *block = rows;
    const words four = words_all(0x0f0f0f0f), two = words_all(0x30303030);

    put_q6_k_scales(block, row_bytes, sink->panel, 32);
    for (size_t half = 0; half < 2; half++) {
        UNROLL
        for (size_t k = 0; k < 2; k++) {
            words high[4];

            words_load_16(block + offsetof(struct dequant_q6_k, qh) + 32 * half + 16 * k, row_bytes,
                          high);
            UNROLL
            for (size_t n = 0; n < 2; n++) {
                words low[4];

                words_load_16(block + 64 * half + 32 * n + 16 * k, row_bytes, low);
                UNROLL
                for (size_t j = 0; j < 4; j++) {
                    const size_t step = 8 * n + 4 * k + j;
                    const words first = n == 0 ? words_left(high[j], 4) : words_left(high[j], 2);
                    const words second = n == 0 ? high[j] : words_right(high[j], 2);

                    sink_put(kind, sink, step,
                             words_or(words_and(low[j], four), words_and(first, two)));
                    sink_put(
                        kind, sink, step + 16,
                        words_or(words_and(words_right(low[j], 4), four), words_and(second, two)));
                }
            }
        }
        sink_end_stage(kind, sink);
    }
}
