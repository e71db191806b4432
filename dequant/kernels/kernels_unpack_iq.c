/*
 * Unpacking of the types with grids in vectors whose lanes are rows. dequant/iq_blocks.h has the
 * layouts, tests/kernels/reference/unpack_iq.c explains integers and zero points.
 */
#include "dequant/iq_blocks.h"
#include "dequant/iq_grids.h"
#include "dequant/kernels/panel_sink.h"
#include "dequant/kernels/words_panel.h"
#include "dequant/kernels/words_runs.h"

enum { ZERO_IQ1 = 9, ZERO_IQ2 = 43, ZERO_IQ3_XXS = 31, ZERO_IQ3_S = 15 };

/* Store d, the lower halves of the lanes, times `factor`. */
INLINE void put_d(struct dequant_panel *panel, words d, float factor)
{
    simd_store(panel->d[0], simd_mul(words_f16(d), simd_all_floats(factor)));
}

/* d of a type whose blocks begin with it. */
INLINE void put_first_d(const void *rows, size_t row_bytes, struct dequant_panel *panel,
                        float factor)
{
    words v[4];

    words_load_16(rows, row_bytes, v);
    put_d(panel, v[0], factor);
}

/* Load n_words words of each row. */
INLINE void load_words(const uint8_t *bytes, size_t row_bytes, size_t n_words, words *out)
{
    for (size_t i = 0; i < n_words; i += 4)
        words_load_16(bytes + 4 * i, row_bytes, out + i);
}

/* 2 * scale + 1, for a scale in each byte. */
INLINE words odd_scales(words scales)
{
    return words_or(words_left(scales, 1), words_all(0x01010101));
}

/* The same for a scale in each lane. */
INLINE words odd_scale(words scale)
{
    return words_or(words_left(scale, 1), words_all(1));
}

/* The scales of eight groups, four bits each. */
INLINE void put_eight_scales(struct dequant_panel *panel, size_t first_group, words v,
                             unsigned zero)
{
    const words four = words_all(0x0f0f0f0f);
    const words low = odd_scales(words_and(v, four));
    const words high = odd_scales(words_and(words_right(v, 4), four));

    for (size_t i = 0; i < 4; i++)
        put_scales_of_zero(panel, first_group + 2 * i, words_byte(low, i), words_byte(high, i),
                           zero);
}

/* The scales of two groups of IQ2_XXS or IQ3_XXS, the upper four bits of the lanes. */
INLINE void put_upper_scales(struct dequant_panel *panel, size_t first_group, words first,
                             words second, unsigned zero)
{
    put_scales_of_zero(panel, first_group, odd_scale(words_right(first, 28)),
                       odd_scale(words_right(second, 28)), zero);
}

/* Eight elements of IQ2: a grid entry, and byte `index` of `signs`. */
INLINE void put_iq2(const struct sink_kind *kind, struct sink *sink, size_t step,
                    const uint64_t *grid, words indices, words signs, unsigned index)
{
    words entries[2];

    words_take_8(grid, indices, entries);
    sink_put(kind, sink, step, words_signed(entries[0], signs, 2 * index, ZERO_IQ2));
    sink_put(kind, sink, step + 1, words_signed(entries[1], signs, 2 * index + 1, ZERO_IQ2));
}

SINK_UNPACKER(iq2_xxs, 1, 64)
{
    const uint8_t *groups = (const uint8_t *)rows + offsetof(struct dequant_iq2_xxs, groups);

    put_first_d(rows, row_bytes, sink->panel, 0.125F);
    for (size_t g = 0; g < 8; g += 2) {
        words v[4];

        words_load_16(groups + 8 * g, row_bytes, v);
        put_upper_scales(sink->panel, g, v[1], v[3], ZERO_IQ2);
        UNROLL
        for (size_t i = 0; i < 2; i++) {
            const words signs = words_even_signs(words_sevens(v[2 * i + 1]));

            UNROLL
            for (unsigned k = 0; k < 4; k++)
                put_iq2(kind, sink, 8 * i + 2 * (size_t)k, dequant_iq2_xxs_grid,
                        words_byte(v[2 * i], k), signs, k);
        }
        sink_end_stage(kind, sink);
    }
}

SINK_UNPACKER(iq2_xs, 1, 64)
{
    const uint8_t *bytes = rows;
    const words nine = words_all(511);
    words v[4];

    put_first_d(rows, row_bytes, sink->panel, 0.125F);
    words_load_16(bytes + sizeof(struct dequant_iq2_xs) - 16, row_bytes, v);
    put_eight_scales(sink->panel, 0, v[2], ZERO_IQ2);
    put_eight_scales(sink->panel, 8, v[3], ZERO_IQ2);
    for (size_t part = 0; part < 4; part++) {
        words_load_16(bytes + offsetof(struct dequant_iq2_xs, runs) + 16 * part, row_bytes, v);
        UNROLL
        for (size_t i = 0; i < 4; i++) {
            const words sevens = words_or(words_and(words_right(v[i], 9), words_all(0x7f)),
                                          words_and(words_right(v[i], 17), words_all(0x7f00)));
            const words signs = words_even_signs(sevens);

            put_iq2(kind, sink, 4 * i, dequant_iq2_xs_grid, words_and(v[i], nine), signs, 0);
            put_iq2(kind, sink, 4 * i + 2, dequant_iq2_xs_grid,
                    words_and(words_right(v[i], 16), nine), signs, 1);
        }
        sink_end_stage(kind, sink);
    }
}

SINK_UNPACKER(iq2_s, 1, 64)
{
    const uint8_t *bytes = rows;
    words qs[8], signs[8], rest[4];

    put_first_d(rows, row_bytes, sink->panel, 0.125F);
    load_words(bytes + offsetof(struct dequant_iq2_s, qs), row_bytes, 8, qs);
    load_words(bytes + offsetof(struct dequant_iq2_s, signs), row_bytes, 8, signs);
    words_load_16(bytes + offsetof(struct dequant_iq2_s, qh), row_bytes, rest);
    put_eight_scales(sink->panel, 0, rest[2], ZERO_IQ2);
    put_eight_scales(sink->panel, 8, rest[3], ZERO_IQ2);
    for (size_t g = 0; g < 8; g += 2) {
        UNROLL
        for (size_t i = 0; i < 2; i++) {
            const words qh = words_left(words_byte(rest[g / 4], (g + i) % 4), 8);

            UNROLL
            for (unsigned k = 0; k < 4; k++) {
                const words high = words_and(words_right(qh, (int)(2 * k)), words_all(0x300));

                put_iq2(kind, sink, 8 * i + 2 * (size_t)k, dequant_iq2_s_grid,
                        words_or(words_byte(qs[g + i], k), high), signs[g + i], k);
            }
        }
        sink_end_stage(kind, sink);
    }
}

SINK_UNPACKER(iq3_xxs, 1, 64)
{
    const uint8_t *bytes = rows;
    words signs[8];

    put_first_d(rows, row_bytes, sink->panel, 0.5F);
    load_words(bytes + offsetof(struct dequant_iq3_xxs, signs), row_bytes, 8, signs);
    for (size_t g = 0; g < 8; g += 2) {
        words v[4];

        put_upper_scales(sink->panel, g, signs[g], signs[g + 1], ZERO_IQ3_XXS);
        words_load_16(bytes + offsetof(struct dequant_iq3_xxs, qs) + 8 * g, row_bytes, v);
        UNROLL
        for (size_t i = 0; i < 2; i++) {
            const words even = words_even_signs(words_sevens(signs[g + i]));

            UNROLL
            for (unsigned k = 0; k < 8; k++) {
                const words entries =
                    words_take_4(dequant_iq3_xxs_grid, words_byte(v[2 * i + k / 4], k % 4));

                sink_put(kind, sink, 8 * i + k,
                         words_signed(words_right(entries, 1), even, k, ZERO_IQ3_XXS));
            }
        }
        sink_end_stage(kind, sink);
    }
}

SINK_UNPACKER(iq3_s, 1, 64)
{
    const uint8_t *bytes = rows;
    words rest[12]; /* 8 bytes of qh, 32 of signs, 4 of scales */

    put_first_d(rows, row_bytes, sink->panel, 1.0F);
    load_words(bytes + offsetof(struct dequant_iq3_s, qh), row_bytes, 8, rest);
    /* The last 16 bytes of the block; the first of them is in rest[7] as well. */
    words_load_16(bytes + sizeof(struct dequant_iq3_s) - 16, row_bytes, rest + 7);
    put_eight_scales(sink->panel, 0, rest[10], ZERO_IQ3_S);
    for (size_t g = 0; g < 8; g += 2) {
        words v[4];

        words_load_16(bytes + offsetof(struct dequant_iq3_s, qs) + 8 * g, row_bytes, v);
        UNROLL
        for (size_t i = 0; i < 2; i++) {
            const words qh = words_byte(rest[g / 4], (g + i) % 4);

            UNROLL
            for (unsigned k = 0; k < 8; k++) {
                const words high = words_and(words_left(qh, (int)(8 - k)), words_all(256));
                const words entries = words_take_4(
                    dequant_iq3_s_grid, words_or(words_byte(v[2 * i + k / 4], k % 4), high));

                sink_put(kind, sink, 8 * i + k,
                         words_signed(entries, rest[2 + g + i], k, ZERO_IQ3_S));
            }
        }
        sink_end_stage(kind, sink);
    }
}

/*
 * Eight elements of IQ1: 8 * (entry + 1), and 2 more without a minus, bit 0 of the lanes of
 * `minus`.
 */
INLINE void put_iq1(const struct sink_kind *kind, struct sink *sink, size_t step, words indices,
                    words minus)
{
    const words plus = words_xor(words_and(minus, words_all(1)), words_all(1));
    const words pairs = words_or(plus, words_left(plus, 16));
    const words shift = words_mul_pairs(pairs, words_all(0x02020202));
    words entries[2];

    words_take_8(dequant_iq1_grid, indices, entries);
    UNROLL
    for (size_t i = 0; i < 2; i++) {
        const words positive = words_add_bytes(entries[i], words_all(0x01010101));

        sink_put(kind, sink, step + i, words_or(words_left(positive, 3), shift));
    }
}

SINK_UNPACKER(iq1_s, 1, 64)
{
    const uint8_t *bytes = rows;
    words qs[8], qh[4];

    put_first_d(rows, row_bytes, sink->panel, 0.125F);
    load_words(bytes + offsetof(struct dequant_iq1_s, qs), row_bytes, 8, qs);
    words_load_16(bytes + offsetof(struct dequant_iq1_s, qh), row_bytes, qh);
    for (size_t g = 0; g < 8; g += 2) {
        const words both = words_and(words_right(qh[g / 2], 12), words_all(0x00070007));
        const words scales = words_or(words_left(both, 1), words_all(0x00010001));

        put_scales_of_zero(sink->panel, g, scales, words_right(scales, 16), ZERO_IQ1);
    }
    for (size_t g = 0; g < 8; g += 2) {
        UNROLL
        for (size_t i = 0; i < 2; i++) {
            const words group = words_right(qh[g / 2], (int)(16 * i));
            const words minus = words_right(group, 15);

            UNROLL
            for (size_t k = 0; k < 4; k++) {
                const words high =
                    words_and(words_left(words_right(group, (int)(3 * k)), 8), words_all(0x700));

                put_iq1(kind, sink, 8 * i + 2 * k, words_or(words_byte(qs[g + i], k), high), minus);
            }
        }
        sink_end_stage(kind, sink);
    }
}

/* The scales of four groups, three bits each. */
INLINE void put_three_bit_scales(struct dequant_panel *panel, size_t first_group, words v)
{
    words scales[4];

    for (size_t i = 0; i < 4; i++)
        scales[i] = odd_scale(words_and(words_right(v, (int)(3 * i)), words_all(7)));
    put_scales_of_zero(panel, first_group, scales[0], scales[1], ZERO_IQ1);
    put_scales_of_zero(panel, first_group + 2, scales[2], scales[3], ZERO_IQ1);
}

SINK_UNPACKER(iq1_m, 1, 64)
{
    const uint8_t *bytes = rows;
    words qs[8], qh[4], v[4];
    words d;

    words_load_16(bytes + sizeof(struct dequant_iq1_m) - 16, row_bytes, v);
    d = words_or(words_and(words_right(v[2], 12), words_all(0x000f)),
                 words_and(words_right(v[2], 24), words_all(0x00f0)));
    d = words_or(d, words_and(words_right(v[3], 4), words_all(0x0f00)));
    d = words_or(d, words_and(words_right(v[3], 16), words_all(0xf000)));
    put_d(sink->panel, d, 0.125F);
    for (size_t i = 0; i < 4; i++)
        put_three_bit_scales(sink->panel, 4 * i, words_right(v[2 + i / 2], (int)(i % 2 * 16)));
    load_words(bytes + offsetof(struct dequant_iq1_m, qs), row_bytes, 8, qs);
    words_load_16(bytes + offsetof(struct dequant_iq1_m, qh), row_bytes, qh);
    for (size_t part = 0; part < 4; part++) {
        UNROLL
        for (size_t k = 0; k < 8; k++) {
            const words group = words_right(qh[part], (int)(4 * k));
            const words high = words_and(words_left(group, 8), words_all(0x700));

            put_iq1(kind, sink, 2 * k, words_or(words_byte(qs[2 * part + k / 4], k % 4), high),
                    words_right(group, 3));
        }
        sink_end_stage(kind, sink);
    }
}
