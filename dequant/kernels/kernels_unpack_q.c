/*
 * Unpacking of types with a scale per 32 elements in vectors whose lanes are rows. dequant/blocks.h
 * has the layouts.
 */
#include "dequant/blocks.h"
#include "dequant/kernels/panel_sink.h"

enum { BLOCKS = DEQUANT_PANEL_ELEMENTS / DEQUANT_BLOCK };

/* Put the 32 elements of the nibbles of 16 bytes, with the fifth bits in `high` if it is there. */
INLINE void put_nibbles(const struct sink_kind *kind, struct sink *sink, const void *qs,
                        size_t row_bytes, const words *high)
{
    const words four = words_all(0x0f0f0f0f);
    words bytes[4];

    words_load_16(qs, row_bytes, bytes);
    UNROLL
    for (size_t i = 0; i < 4; i++) {
        words low_half = words_and(bytes[i], four);
        words high_half = words_and(words_right(bytes[i], 4), four);

        if (high) {
            low_half =
                words_or(low_half, words_left(words_spread(words_right(*high, (int)(4 * i))), 4));
            high_half = words_or(
                high_half, words_left(words_spread(words_right(*high, (int)(4 * i + 16))), 4));
        }
        sink_put(kind, sink, i, low_half);
        sink_put(kind, sink, 4 + i, high_half);
    }
    sink_end_stage(kind, sink);
}

/*
 * Put blocks that end with 16 bytes of nibbles. The fifth bits are 32 bits from byte `fifth` of the
 * block on, 2 or 4; 0 if there are none.
 */
INLINE void put_blocks(const struct sink_kind *kind, struct sink *sink, const void *rows,
                       size_t row_bytes, size_t block_bytes, size_t fifth)
{
    const uint8_t *block = rows;

    for (size_t b = 0; b < sink->n_stages; b++, block += block_bytes) {
        words head[4], high;

        words_load_16(block, row_bytes, head);
        simd_store(sink->panel->d[b], words_f16(head[0]));
        if (kind->form.has_mins)
            simd_store(sink->panel->m[b], words_f16(words_right(head[0], 16)));
        high = fifth == 4 ? head[1] : words_or(words_right(head[0], 16), words_left(head[1], 16));
        put_nibbles(kind, sink, block + block_bytes - DEQUANT_BLOCK / 2, row_bytes,
                    fifth > 0 ? &high : NULL);
    }
}

#define DEFINE_NIBBLES(type, fifth)                                                                \
    SINK_UNPACKER(type, BLOCKS, 32)                                                                \
    {                                                                                              \
        put_blocks(kind, sink, rows, row_bytes, sizeof(struct dequant_##type), fifth);             \
    }
DEFINE_NIBBLES(q4_0, 0)
DEFINE_NIBBLES(q4_1, 0)
DEFINE_NIBBLES(q5_0, offsetof(struct dequant_q5_0, qh))
DEFINE_NIBBLES(q5_1, offsetof(struct dequant_q5_1, qh))

SINK_UNPACKER(q8_0, BLOCKS, 32)
{
    const words shift = words_all(0x80808080);
    const uint8_t *block = rows;

    for (size_t b = 0; b < sink->n_stages; b++, block += sizeof(struct dequant_q8_0)) {
        words head[4], bytes[4];

        words_load_16(block, row_bytes, head);
        simd_store(sink->panel->d[b], words_f16(head[0]));
        UNROLL
        for (size_t half = 0; half < 2; half++) {
            words_load_16(block + offsetof(struct dequant_q8_0, qs) + 16 * half, row_bytes, bytes);
            UNROLL
            for (size_t i = 0; i < 4; i++)
                sink_put(kind, sink, 4 * half + i, words_xor(bytes[i], shift));
        }
        sink_end_stage(kind, sink);
    }
}
