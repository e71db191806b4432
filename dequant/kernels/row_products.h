/*
 * Products with a column for vectors of 32 bytes. The integers of each row are multiplied in the
 * order in which its block has them, and only the sums of products are brought into lanes, four
 * rows at a time: there are fewer of them than integers.
 *
 * For each type, TYPE_row() multiplies the integers of one row.
 */
#pragma once

#include "dequant/kernels/panel_sink.h"

#if defined(__AVX2__) && !defined(__AVX512F__)
#define ROW_PRODUCTS 1

/*
 * Multiply the integers of a stage of a row with its activations x. Each half of a sum, 16 bytes,
 * belongs to one group. Its numbers are sums of products, of 16 bits, or of 32 if they are wide.
 */
typedef void row_dot_fn(const void *block, size_t stage, const int8_t *x, simd_words sums[]);

INLINE simd_words row_load(const void *from)
{
    return (simd_words)float_load(from);
}

INLINE simd_words row_all(uint32_t value)
{
    return value - (simd_words){0};
}

/* Products of unsigned and signed bytes, added in pairs. */
INLINE simd_words row_dot(simd_words q, simd_words x)
{
    return (simd_words)_mm256_maddubs_epi16((__m256i)q, (__m256i)x);
}

/* Multiply each number of 16 bits with its factor, and add the products in pairs. */
INLINE simd_words row_add_pairs(simd_words v, simd_words factors)
{
    return (simd_words)_mm256_madd_epi16((__m256i)v, (__m256i)factors);
}

/* Products of signed bytes, added in fours; no x is -128. */
INLINE simd_words row_dot_signed(simd_words q, simd_words x)
{
    const simd_words pairs = row_dot((simd_words)_mm256_abs_epi8((__m256i)q),
                                     (simd_words)_mm256_sign_epi8((__m256i)x, (__m256i)q));

    return row_add_pairs(pairs, row_all(0x00010001));
}

INLINE simd_words row_load_halves(const void *low, const void *high)
{
    return (simd_words)_mm256_set_m128i((__m128i)simd_load(high), (__m128i)simd_load(low));
}

/* Bytes -1 or 0 for bits 16 * index and on of each half. */
INLINE simd_words row_bits(simd_words v, size_t index)
{
    const int64_t first = (int64_t)index * 0x0202020202020202;
    const __m256i bits = _mm256_set1_epi64x((long long)0x8040201008040201);
    const simd_words places =
        part_repeat(simd_two((uint64_t)first, (uint64_t)first + 0x0101010101010101));

    return (simd_words)_mm256_cmpeq_epi8(_mm256_and_si256((__m256i)part_look_up(v, places), bits),
                                         bits);
}

INLINE simd_words row_add(bool is_wide, simd_words a, simd_words b)
{
    return is_wide ? a + b : (simd_words)((words_pairs)a + (words_pairs)b);
}

/*
 * Join sums of two rows, then sums of two pairs of rows: lane r of each half gets the sum of the
 * half of row r.
 */
INLINE simd_words row_join_4(const struct sink_kind *kind, simd_words a, simd_words b)
{
    return row_add(kind->is_wide, part_zip_low_4(a, b), part_zip_high_4(a, b));
}

INLINE simd_words row_join_8(const struct sink_kind *kind, simd_words a, simd_words b)
{
    return row_add(kind->is_wide, part_zip_low_8(a, b), part_zip_high_8(a, b));
}

/* A sum of four rows times the scales of the groups in its halves, which may be the same. */
INLINE simd_words row_scaled(const struct sink_kind *kind, simd_words sum, const void *low,
                             const void *high)
{
    const simd_words scales =
        low == high ? part_repeat(simd_load(low)) : row_load_halves(low, high);

    return kind->is_wide ? sum * (simd_words)((int_vector)scales >> 16)
                         : row_add_pairs(sum, scales);
}

/* Sums of parts, each of four rows in both halves. */
typedef simd_words row_totals[8][DEQUANT_PANEL_ROWS / 4];

/* Multiply the integers of four rows, the `index`-th of the panel, and load d of their blocks. */
INLINE void multiply_four_rows(const struct sink_kind *kind, row_dot_fn *dot,
                               const struct sink *sink, const uint8_t *rows, size_t row_bytes,
                               size_t index, const simd_words zeros[], row_totals totals)
{
    const struct dequant_form *form = &kind->form;
    const size_t n_sums = kind->n_sums, n_parts = kind->stage_elements / part_elements(form);
    const size_t n_groups = kind->stage_elements / form->group_elements / n_sums;
    const size_t per_part = n_sums < n_parts ? 1 : n_sums / n_parts;
    const size_t n_stages = DEQUANT_PANEL_ELEMENTS / kind->stage_elements;
    const size_t block_bytes = kind->row_bytes * part_elements(form) / DEQUANT_PANEL_ELEMENTS;
    const uint8_t *next = sink->next + index * n_stages * stage_bytes(kind) / 4;

    UNROLL
    for (size_t stage = 0; stage < n_stages; stage++, next += stage_bytes(kind) / 4) {
        simd_words sums[4][4];

        if (!has_scales(form) && stage == sink->n_stages)
            break;
        UNROLL
        for (size_t i = 0; i < stage_bytes(kind) / 4; i += 64)
            __builtin_prefetch(next + i, 0, 2);
        UNROLL
        for (size_t r = 0; r < 4; r++) {
            dot(rows + r * row_bytes, stage, sink->x->q + stage * kind->stage_elements, sums[r]);
            if (r % 2 == 0)
                continue;
            UNROLL
            for (size_t s = 0; s < n_sums; s++)
                sums[r - 1][s] = row_join_4(kind, sums[r - 1][s], sums[r][s]);
        }
        UNROLL
        for (size_t s = 0; s < n_sums; s++) {
            const size_t at = stage * n_sums + s, group = at * n_groups;
            const simd_words joined = row_join_8(kind, sums[0][s], sums[2][s]);
            const simd_words sum = kind->zero == 0
                                       ? joined
                                       : (simd_words)((words_pairs)joined - (words_pairs)zeros[at]);
            simd_words *total = &totals[at / per_part][index];
            simd_words product;

            if (!has_scales(form))
                product = kind->is_wide ? sum : row_add_pairs(sum, row_all(0x00010001));
            else
                product = row_scaled(kind, sum, sink->panel->scales[group][4 * index],
                                     sink->panel->scales[group + n_groups - 1][4 * index]);
            *total = s % per_part == 0 ? product : *total + product;
        }
        for (size_t p = stage * n_parts; !has_scales(form) && p < (stage + 1) * n_parts; p++) {
            const uint8_t *block = rows + p * block_bytes;
            const simd_bytes heads =
                simd_four(simd_u32(block), simd_u32(block + row_bytes),
                          simd_u32(block + 2 * row_bytes), simd_u32(block + 3 * row_bytes));

            memcpy(&sink->panel->d[p][4 * index], &heads, sizeof heads);
        }
    }
}

/* Add a part of sixteen rows: both halves of its sums, or if they are joined, half `half`. */
INLINE void add_row_part(const struct sink_kind *kind, struct sink *sink, size_t part,
                         const simd_words totals[], bool is_joined, size_t half)
{
    const struct dequant_form *form = &kind->form;
    /* Rows subtract the zero point of types with integer scales. */
    const struct dequant_form without_zero = {form->span_elements, form->group_elements, 0,
                                              form->greatest, form->has_mins};
    words head;

    if (!has_scales(form)) {
        head = words_load((const uint32_t *)(const void *)sink->panel->d[part]);
        simd_store(sink->panel->d[part], words_f16(head));
        if (form->has_mins)
            simd_store(sink->panel->m[part], words_f16(words_right(head, 16)));
    }
    UNROLL
    for (size_t i = 0; i < FLOAT_PARTS; i++) {
        const __m256i a = (__m256i)totals[2 * i], b = (__m256i)totals[2 * i + 1];
        const int_vector low = (int_vector)_mm256_permute2x128_si256(a, b, 0x20);
        const int_vector high = (int_vector)_mm256_permute2x128_si256(a, b, 0x31);
        const int_vector sum = !is_joined ? low + high : half == 0 ? low : high;

        if (has_scales(form))
            add_part(&without_zero, sink->panel, FLOAT_WIDTH * i, part, sink->x, sum,
                     &sink->part_sums[i]);
        else
            sink->totals[i] = add_span(form, sink->panel, FLOAT_WIDTH * i, part, sink->x,
                                       sum + span_start(form, part, sink->x), sink->totals[i]);
    }
}

/* Add the products of a panel, whose integer scales have been put. */
INLINE void row_panel(const struct sink_kind *kind, row_dot_fn *dot, const uint8_t *rows,
                      size_t row_bytes, struct sink *sink)
{
    const size_t n_parts = kind->stage_elements / part_elements(&kind->form);
    const bool is_joined = kind->n_sums < n_parts;
    simd_words zeros[DEQUANT_PANEL_ELEMENTS / 32];
    row_totals totals;

    for (size_t i = 0; i < (kind->zero > 0 ? DEQUANT_PANEL_ELEMENTS / 32 : 0); i++) {
        const simd_words zero =
            row_dot(row_all((uint32_t)kind->zero * 0x01010101), row_load(sink->x->q + 32 * i));
        const simd_words twice = row_join_4(kind, zero, zero);

        zeros[i] = row_join_8(kind, twice, twice);
    }
    /* Unrolled, the loop would need more registers for addresses than there are. */
    _Pragma("GCC unroll 1") for (size_t i = 0; i < DEQUANT_PANEL_ROWS / 4; i++)
        multiply_four_rows(kind, dot, sink, rows + 4 * i * row_bytes, row_bytes, i, zeros, totals);
    for (size_t stage = 0; stage < sink->n_stages; stage++) {
        UNROLL
        for (size_t p = 0; p < n_parts; p++)
            add_row_part(kind, sink, stage * n_parts + p,
                         totals[is_joined ? stage : stage * n_parts + p], is_joined, p);
    }
    sink->next += sink->n_stages * stage_bytes(kind);
}

/*
 * As SINK_UNPACKER; the product with a column is in stages of row_stage elements. put_scales puts
 * integer scales and minima to the panel, dot_row is the row_dot_fn. The rest is of struct
 * sink_kind.
 */
#define ROW_UNPACKER(type, n_blocks, n_stage, row_stage, put_scales, dot_row, ...)                 \
    INLINE void type##_row(const void *block, size_t stage, const int8_t *x, simd_words sums[])    \
    {                                                                                              \
        dot_row;                                                                                   \
    }                                                                                              \
                                                                                                   \
    INLINE void type##_panel(const void *rows, size_t row_bytes, const struct sink_kind *kind,     \
                             struct sink *sink)                                                    \
    {                                                                                              \
        put_scales;                                                                                \
        row_panel(kind, type##_row, rows, row_bytes, sink);                                        \
    }                                                                                              \
    SINK_FUNCTIONS(type, n_blocks, n_stage, row_stage, type##_panel, __VA_ARGS__)

#else
#define ROW_UNPACKER(type, n_blocks, stage, ...) SINK_UNPACKER(type, n_blocks, stage)
#endif
