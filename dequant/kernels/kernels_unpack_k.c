/*
 * Unpacking of the K types in vectors whose lanes are rows: 16 bytes of each row become four
 * vectors of 32 bits, which are then taken apart for all rows at once. dequant/blocks.h has the
 * layouts.
 */
#include "dequant/blocks.h"
#include "dequant/kernels/panel_sink.h"
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
    put_four_scales(panel, 0, words_and(head[1], six));
    put_four_mins(panel, 0, words_and(head[2], six));
    put_four_scales(panel, 4, words_or(words_and(head[3], four), high_scales));
    put_four_mins(panel, 4, words_or(words_and(words_right(head[3], 4), four), high_mins));
}

SINK_UNPACKER(q4_k, 1, 64)
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

SINK_UNPACKER(q5_k, 1, 64)
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

SINK_UNPACKER(q6_k, 1, 128)
{
    const uint8_t *block = rows;
    const words four = words_all(0x0f0f0f0f), two = words_all(0x30303030);
    words tail[4];

    for (size_t k = 0; k < 4; k++) {
        words scales[4];

        if (k == 0)
            words_load_16(block + offsetof(struct dequant_q6_k, scales), row_bytes, tail);
        for (size_t i = 0; i < 4; i++)
            scales[i] = words_right_signed(words_left(tail[k], (int)(24 - 8 * i)), 24);
        for (size_t i = 0; i < 4; i++)
            words_put_pair(sink->panel->scales[4 * k + i][0], scales[i], scales[i]);
        for (size_t i = 0; i < 4; i += 2)
            words_put_pair(sink->panel->mins[2 * k + i / 2][0], words_left(scales[i], 5),
                           words_left(scales[i + 1], 5));
    }
    /* The last 16 bytes of the block; d is the last two. */
    words_load_16(block + sizeof(struct dequant_q6_k) - 16, row_bytes, tail);
    simd_store(sink->panel->d[0], words_f16(words_right(tail[3], 16)));
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
