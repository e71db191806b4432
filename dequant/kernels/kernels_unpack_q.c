/*
 * Unpacking of types with a scale per 32 elements, and of IQ4_XS, in vectors whose lanes are rows.
 * dequant/blocks.h and dequant/iq_blocks.h have the layouts.
 */
#include "dequant/blocks.h"
#include "dequant/iq_blocks.h"
#include "dequant/kernels/row_products.h"
#include "dequant/kernels/words_panel.h"

enum { BLOCKS = DEQUANT_PANEL_ELEMENTS / DEQUANT_BLOCK };

/* dequant_iq4_values + 128 */
static const uint8_t values[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                   129, 141, 153, 166, 181, 197, 217, 241};

INLINE words low_nibbles(words v, const uint8_t *table)
{
    v = words_and(v, words_all(0x0f0f0f0f));
    return table ? words_lookup(table, v) : v;
}

/*
 * Put the 32 elements of the nibbles of 16 bytes: with the fifth bits in `high` if it is there, and
 * as indices of a table if there is one.
 */
INLINE void put_nibbles(const struct sink_kind *kind, struct sink *sink, size_t first_step,
                        const void *qs, size_t row_bytes, const words *high, const uint8_t *table)
{
    words bytes[4];

    words_load_16(qs, row_bytes, bytes);
    UNROLL
    for (size_t i = 0; i < 4; i++) {
        words low_half = low_nibbles(bytes[i], table);
        words high_half = low_nibbles(words_right(bytes[i], 4), table);

        if (high) {
            low_half =
                words_or(low_half, words_left(words_spread(words_right(*high, (int)(4 * i))), 4));
            high_half = words_or(
                high_half, words_left(words_spread(words_right(*high, (int)(4 * i + 16))), 4));
        }
        sink_put(kind, sink, first_step + i, low_half);
        sink_put(kind, sink, first_step + 4 + i, high_half);
    }
}

/*
 * Put blocks that end with 16 bytes of nibbles. The fifth bits are 32 bits from byte `fifth` of the
 * block on, 2 or 4; 0 if there are none.
 */
INLINE void put_blocks(const struct sink_kind *kind, struct sink *sink, const void *rows,
                       size_t row_bytes, size_t block_bytes, size_t fifth, const uint8_t *table)
{
    const uint8_t *block = rows;

    for (size_t b = 0; b < sink->n_stages; b++, block += block_bytes) {
        words head[4], high;

        words_load_16(block, row_bytes, head);
        simd_store(sink->panel->d[b], words_f16(head[0]));
        if (kind->form.has_mins)
            simd_store(sink->panel->m[b], words_f16(words_right(head[0], 16)));
        high = fifth == 4 ? head[1] : words_or(words_right(head[0], 16), words_left(head[1], 16));
        put_nibbles(kind, sink, 0, block + block_bytes - DEQUANT_BLOCK / 2, row_bytes,
                    fifth > 0 ? &high : NULL, table);
        sink_end_stage(kind, sink);
    }
}

#if defined(ROW_PRODUCTS)
/* Twice 16 bytes, each in a half of the sum. Fifth bits are the 4 bytes before. */
INLINE simd_words dot_nibbles(const uint8_t *first, const uint8_t *second, bool has_fifth,
                              const uint8_t *table, const int8_t *x)
{
    const simd_words both = row_load_halves(first, second);
    simd_words sum[2];

    UNROLL
    for (size_t i = 0; i < 2; i++) {
        const simd_words of_x = row_load_halves(x + 16 * i, x + 16 * i + 32);
        simd_words q = both >> 4 * (int)i & 0x0f0f0f0f;

        if (has_fifth)
            q |= row_bits(row_load_halves(first - 4, second - 4), i) & 0x10101010;
        if (table)
            sum[i] = row_dot_signed(of_x, part_look_up(part_repeat(simd_load(table) ^ 128), q));
        else
            sum[i] =
                has_fifth ? row_add_pairs(row_dot(q, of_x), row_all(0x00010001)) : row_dot(q, of_x);
    }
    return row_add(has_fifth || table, sum[0], sum[1]);
}
#endif

#define DEFINE_NIBBLES(type, fifth, table)                                                         \
    ROW_UNPACKER(type, BLOCKS, 32, 64, (void)0,                                                    \
                 sums[0] = dot_nibbles(((const struct dequant_##type *)block)[2 * stage].qs,       \
                                       ((const struct dequant_##type *)block)[2 * stage + 1].qs,   \
                                       (fifth) > 0, table, x),                                     \
                 1, (fifth) > 0 || (table) != NULL, 0)                                             \
    {                                                                                              \
        put_blocks(kind, sink, rows, row_bytes, sizeof(struct dequant_##type), fifth, table);      \
    }
DEFINE_NIBBLES(q4_0, 0, NULL)
DEFINE_NIBBLES(q4_1, 0, NULL)
DEFINE_NIBBLES(q5_0, offsetof(struct dequant_q5_0, qh), NULL)
DEFINE_NIBBLES(q5_1, offsetof(struct dequant_q5_1, qh), NULL)
DEFINE_NIBBLES(iq4_nl, 0, values)

ROW_UNPACKER(q8_0, BLOCKS, 32, 32, (void)0,
             sums[0] = row_dot_signed(row_load(((const struct dequant_q8_0 *)block)[stage].qs),
                                      row_load(x)),
             1, true, 0)
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

/* d, and the scales with their products with the zero point. */
INLINE void put_iq4_xs_scales(const void *rows, size_t row_bytes, struct dequant_panel *panel)
{
    const words three = words_all(0x30), offset = words_all((uint32_t)-32);
    words head[4], scales[8];

    words_load_16(rows, row_bytes, head);
    simd_store(panel->d[0], words_f16(head[0]));
    for (size_t s = 0; s < 8; s++) {
        const words low = words_and(words_right(head[1], (int)(4 * s)), words_all(15));
        const words high = words_and(words_right(words_right(head[0], 12), (int)(2 * s)), three);

        scales[s] = words_add(words_or(low, high), offset);
    }
    for (size_t s = 0; s < 8; s += 2)
        put_scales_of_zero(panel, s, scales[s], scales[s + 1], 128);
}

ROW_UNPACKER(iq4_xs, 1, 64, 64, put_iq4_xs_scales(rows, row_bytes, sink->panel),
             sums[0] = dot_nibbles(((const struct dequant_iq4_xs *)block)->qs[2 * stage],
                                   ((const struct dequant_iq4_xs *)block)->qs[2 * stage + 1], false,
                                   values, x),
             1, true, 0)
{
    const uint8_t *qs = (const uint8_t *)rows + offsetof(struct dequant_iq4_xs, qs);

    put_iq4_xs_scales(rows, row_bytes, sink->panel);
    for (size_t s = 0; s < DEQUANT_SUPERBLOCK / 32; s += 2) {
        put_nibbles(kind, sink, 0, qs + 16 * s, row_bytes, NULL, values);
        put_nibbles(kind, sink, 8, qs + 16 * s + 16, row_bytes, NULL, values);
        sink_end_stage(kind, sink);
    }
}
