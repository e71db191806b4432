/* Unpacking of IQ4_NL and IQ4_XS in vectors whose lanes are rows; see dequant/iq_blocks.h. */
#include "dequant/iq_blocks.h"
#include "dequant/kernels/panel_sink.h"

/* dequant_iq4_values + 128 */
static const uint8_t values[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                   129, 141, 153, 166, 181, 197, 217, 241};

/* Put the 32 elements of the nibbles of 16 bytes. */
INLINE void put_values(const struct sink_kind *kind, struct sink *sink, size_t first_step,
                       const void *qs, size_t row_bytes)
{
    const words four = words_all(0x0f0f0f0f);
    words bytes[4];

    words_load_16(qs, row_bytes, bytes);
    UNROLL
    for (size_t i = 0; i < 4; i++) {
        sink_put(kind, sink, first_step + i, words_lookup(values, words_and(bytes[i], four)));
        sink_put(kind, sink, first_step + 4 + i,
                 words_lookup(values, words_and(words_right(bytes[i], 4), four)));
    }
}

SINK_UNPACKER(iq4_nl, DEQUANT_PANEL_ELEMENTS / DEQUANT_BLOCK, 32)
{
    const uint8_t *block = rows;

    for (size_t b = 0; b < sink->n_stages; b++) {
        words head[4];

        words_load_16(block, row_bytes, head);
        simd_store(sink->panel->d[b], words_f16(head[0]));
        put_values(kind, sink, 0, block + offsetof(struct dequant_iq4_nl, qs), row_bytes);
        sink_end_stage(kind, sink);
        block += sizeof(struct dequant_iq4_nl);
    }
}

SINK_UNPACKER(iq4_xs, 1, 64)
{
    const uint8_t *qs = (const uint8_t *)rows + offsetof(struct dequant_iq4_xs, qs);
    const words three = words_all(0x30), offset = words_all((uint32_t)-32);
    words head[4];

    words_load_16(rows, row_bytes, head);
    simd_store(sink->panel->d[0], words_f16(head[0]));
    for (size_t s = 0; s < DEQUANT_SUPERBLOCK / 32; s += 2) {
        words scales[2];

        UNROLL
        for (size_t i = 0; i < 2; i++) {
            const words low = words_and(words_right(head[1], (int)(4 * (s + i))), words_all(15));
            const words high =
                words_and(words_right(words_right(head[0], 12), (int)(2 * (s + i))), three);

            scales[i] = words_add(words_or(low, high), offset);
            words_put_pair(sink->panel->scales[s + i][0], scales[i], scales[i]);
            put_values(kind, sink, 8 * i, qs + 16 * (s + i), row_bytes);
        }
        words_put_pair(sink->panel->mins[s / 2][0], words_left(scales[0], 7),
                       words_left(scales[1], 7));
        sink_end_stage(kind, sink);
    }
}
