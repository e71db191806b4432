/* Storing scales and minima of sixteen rows to a panel. */
#pragma once

#include "dequant/kernels/words.h"
#include "dequant/forms.h"

/* Signed bytes `first` and `second` of each lane as two numbers of 16 bits. */
INLINE words words_two_bytes(words v, size_t first, size_t second)
{
    /* Each byte becomes the upper one of 16 bits; an index of 0xff gives 0. */
    const simd_words places =
        part_repeat(simd_four(0x00000000, 0x04040404, 0x08080808, 0x0c0c0c0c)) |
        (uint32_t)(0x00ff00ff | first << 8 | second << 24);

    SIMD_EACH(words, (simd_words)((words_signed_pairs)part_look_up(v.v[i], places) >> 8));
}

/*
 * Store the scales of four groups, signed bytes of the lanes, and unless `zero` is 0 their products
 * with the zero point.
 */
INLINE void put_four_scales(struct dequant_panel *panel, size_t first_group, words bytes,
                            unsigned zero)
{
    for (size_t i = 0; i < 4; i++)
        words_store(panel->scales[first_group + i][0], words_two_bytes(bytes, i, i));
    for (size_t i = 0; zero > 0 && i < 4; i += 2)
        words_store(
            panel->mins[(first_group + i) / 2][0],
            words_mul_pairs(words_two_bytes(bytes, i, i + 1), words_all(zero << 16 | zero)));
}

/* Store the minima of four groups. */
INLINE void put_four_mins(struct dequant_panel *panel, size_t first_group, words bytes)
{
    for (size_t i = 0; i < 4; i += 2)
        words_store(panel->mins[(first_group + i) / 2][0], words_two_bytes(bytes, i, i + 1));
}

/*
 * Store the scales of two groups of a type with a zero point, the lower halves of `first` and
 * `second`, and their products with the zero point.
 */
INLINE void put_scales_of_zero(struct dequant_panel *panel, size_t first_group, words first,
                               words second, unsigned zero)
{
    const words low = words_and(first, words_all(0xffff)), high = words_left(second, 16);

    words_store(panel->scales[first_group][0], words_or(low, words_left(first, 16)));
    words_store(panel->scales[first_group + 1][0], words_or(high, words_right(high, 16)));
    words_store(panel->mins[first_group / 2][0],
                words_mul_pairs(words_or(low, high), words_all(zero << 16 | zero)));
}
