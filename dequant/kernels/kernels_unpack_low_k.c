/* Unpacking of Q2_K and Q3_K in vectors whose lanes are rows. dequant/blocks.h has the layouts. */
#include "dequant/blocks.h"
#include "dequant/kernels/sink.h"
#include "dequant/kernels/words_panel.h"

/* The step of the elements in bits 0 and 1 of word `word` of qs; those 32, 64 and 96 on follow. */
static inline size_t step_of(size_t word)
{
    return word / 8 * 32 + word % 8;
}

INLINE void q2_k(const void *rows, size_t row_bytes, struct sink *sink)
{
    const uint8_t *bytes = rows;
    const words two = words_all(0x03030303), four = words_all(0x0f0f0f0f);
    words v[4];

    words_load_16(bytes + sizeof(struct dequant_q2_k) - 16, row_bytes, v);
    words_store_floats(sink->panel->d[0], words_f16(v[3]));
    words_store_floats(sink->panel->m[0], words_negated(words_f16(words_right(v[3], 16))));
    words_load_16(bytes + offsetof(struct dequant_q2_k, scales), row_bytes, v);
#pragma GCC unroll 16
    for (size_t i = 0; i < 4; i++) {
        put_four_scales(sink->panel, 4 * i, words_and(v[i], four));
        put_four_mins(sink->panel, 4 * i, words_and(words_right(v[i], 4), four));
    }
#pragma GCC unroll 16
    for (size_t i = 0; i < 4; i++) {
        words_load_16(bytes + offsetof(struct dequant_q2_k, qs) + 16 * i, row_bytes, v);
#pragma GCC unroll 16
        for (size_t j = 0; j < 4; j++) {
#pragma GCC unroll 16
            for (size_t k = 0; k < 4; k++)
                sink_put(sink, step_of(4 * i + j) + 8 * k,
                         words_and(words_right(v[j], (int)(2 * k)), two));
        }
    }
}

static inline void put_q3_k_scales(const uint8_t *bytes, size_t row_bytes,
                                   struct dequant_panel *panel)
{
    const words four = words_all(0x0f0f0f0f), high = words_all(0x30303030), bias = words_all(32);
    words v[4], scales[4];

    words_load_16(bytes + offsetof(struct dequant_q3_k, scales_high) - 12, row_bytes, v);
    scales[0] = words_or(words_and(v[1], four), words_and(words_left(v[3], 4), high));
    scales[1] = words_or(words_and(v[2], four), words_and(words_left(v[3], 2), high));
    scales[2] = words_or(words_and(words_right(v[1], 4), four), words_and(v[3], high));
    scales[3] =
        words_or(words_and(words_right(v[2], 4), four), words_and(words_right(v[3], 2), high));
#pragma GCC unroll 16
    for (size_t i = 0; i < 16; i += 2)
        put_scales_of_zero(panel, i, words_sub(words_byte(scales[i / 4], i % 4), bias),
                           words_sub(words_byte(scales[i / 4], i % 4 + 1), bias), 4);
}

INLINE void q3_k(const void *rows, size_t row_bytes, struct sink *sink)
{
    const uint8_t *bytes = rows;
    const words two = words_all(0x03030303), third = words_all(0x04040404);
    words v[4], high[8];

    words_load_16(bytes + sizeof(struct dequant_q3_k) - 16, row_bytes, v);
    words_store_floats(sink->panel->d[0], words_f16(words_right(v[3], 16)));
    put_q3_k_scales(bytes, row_bytes, sink->panel);
    words_load_16(bytes + offsetof(struct dequant_q3_k, qh), row_bytes, high);
    words_load_16(bytes + offsetof(struct dequant_q3_k, qh) + 16, row_bytes, high + 4);
#pragma GCC unroll 16
    for (size_t i = 0; i < 4; i++) {
        words_load_16(bytes + offsetof(struct dequant_q3_k, qs) + 16 * i, row_bytes, v);
#pragma GCC unroll 16
        for (size_t j = 0; j < 4; j++) {
            const words qh = high[i % 2 * 4 + j];

#pragma GCC unroll 16
            for (size_t k = 0; k < 4; k++) {
                const words low = words_and(words_right(v[j], (int)(2 * k)), two);
                const int place = (int)(i / 2 * 4 + k); /* of the third bit in qh */
                const words bit =
                    place < 2 ? words_left(qh, 2 - place) : words_right(qh, place - 2);

                sink_put(sink, step_of(4 * i + j) + 8 * k, words_or(low, words_and(bit, third)));
            }
        }
    }
}

SINK_DEFINE_UNPACKER(q2_k, 1)
SINK_DEFINE_UNPACKER(q3_k, 1)
