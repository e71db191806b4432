/*
 * Unpacking of the types of up to two bits in vectors whose lanes are rows. dequant/blocks.h has
 * the layouts.
 */
#include "dequant/blocks.h"
#include "dequant/kernels/panel_sink.h"
#include "dequant/kernels/words_runs.h"

INLINE void put_ternary_scales(struct dequant_panel *panel, words d)
{
    const words ones = words_all(1 << 16 | 1);

    simd_store(panel->d[0], words_f16(d));
    for (size_t g = 0; g < 8; g++)
        words_store(panel->scales[g][0], ones);
    for (size_t g = 0; g < 8; g += 2)
        words_store(panel->mins[g / 2][0], ones);
}

SINK_UNPACKER(tq2_0, 1, 128)
{
    const uint8_t *bytes = rows;
    const words two = words_all(0x03030303);
    words v[4];

    words_load_16(bytes + sizeof(struct dequant_tq2_0) - 16, row_bytes, v);
    put_ternary_scales(sink->panel, words_right(v[3], 16));
    for (size_t half = 0; half < 2; half++) {
        UNROLL
        for (size_t w = 0; w < 8; w++) {
            if (w % 4 == 0)
                words_load_16(bytes + 32 * half + 4 * w, row_bytes, v);
            UNROLL
            for (size_t k = 0; k < 4; k++)
                sink_put(kind, sink, w + 8 * k,
                         words_and(words_right(v[w % 4], (int)(2 * k)), two));
        }
        sink_end_stage(kind, sink);
    }
}

/* Put the n digits of the bytes, `stride` steps apart. */
INLINE void put_digits(const struct sink_kind *kind, struct sink *sink, size_t first_step,
                       words bytes, size_t n, size_t stride)
{
    const words low = words_all(0x00ff00ff);
    words even = words_and(bytes, low), odd = words_and(words_right(bytes, 8), low);

    UNROLL
    for (size_t k = 0; k < n; k++) {
        even = words_add(even, words_left(even, 1));
        odd = words_add(odd, words_left(odd, 1));
        sink_put(kind, sink, first_step + k * stride,
                 words_or(words_and(words_right(even, 8), words_all(0x00030003)),
                          words_and(odd, words_all(0x03000300))));
        even = words_and(even, low);
        odd = words_and(odd, low);
    }
}

SINK_UNPACKER(tq1_0, 1, 256)
{
    const uint8_t *bytes = rows;
    words v[4];

    words_load_16(bytes + sizeof(struct dequant_tq1_0) - 16, row_bytes, v);
    put_ternary_scales(sink->panel, words_right(v[3], 16));
    UNROLL
    for (size_t i = 0; i < 12; i++) {
        if (i % 4 == 0)
            words_load_16(bytes + 4 * i, row_bytes, v);
        if (i < 8)
            put_digits(kind, sink, i, v[i % 4], 5, 8);
        else
            put_digits(kind, sink, 40 + i - 8, v[i % 4], 5, 4);
    }
    words_load_16(bytes + offsetof(struct dequant_tq1_0, tail) - 12, row_bytes, v);
    put_digits(kind, sink, 60, v[3], 4, 1);
    sink_end_stage(kind, sink);
}

/* Store d of n spans: the lower half of the lanes. */
INLINE void put_spans(struct dequant_panel *panel, size_t first, size_t n, words d)
{
    for (size_t i = first; i < first + n; i++)
        simd_store(panel->d[i], words_f16(d));
}

SINK_UNPACKER(q1_0, 2, 128)
{
    const words ones = words_all(0x01010101), all = words_all(0xffffffff);

    for (size_t b = 0; b < sink->n_stages; b++) {
        const uint8_t *block = (const uint8_t *)rows + b * sizeof(struct dequant_q1_0);
        words v[4];

        words_load_16(block, row_bytes, v);
        put_spans(sink->panel, 4 * b, 4, v[0]);
        words_load_16(block + offsetof(struct dequant_q1_0, qs), row_bytes, v);
        UNROLL
        for (size_t i = 0; i < 4; i++) {
            /* A set bit means plus. */
            const words minus = words_xor(v[i], all);

            UNROLL
            for (unsigned k = 0; k < 8; k++)
                sink_put(kind, sink, 8 * i + k, words_signed(ones, minus, k, 1));
        }
        sink_end_stage(kind, sink);
    }
}

SINK_UNPACKER(q2_0, 4, 64)
{
    for (size_t b = 0; b < sink->n_stages; b++) {
        const uint8_t *block = (const uint8_t *)rows + b * sizeof(struct dequant_q2_0);
        words v[4];

        words_load_16(block, row_bytes, v);
        put_spans(sink->panel, 2 * b, 2, v[0]);
        words_load_16(block + offsetof(struct dequant_q2_0, qs), row_bytes, v);
        UNROLL
        for (size_t i = 0; i < 16; i++) {
            words q = words_byte(v[i / 4], i % 4);

            q = words_or(q, words_left(q, 12));
            q = words_or(q, words_left(q, 6));
            sink_put(kind, sink, i, words_and(q, words_all(0x03030303)));
        }
        sink_end_stage(kind, sink);
    }
}
