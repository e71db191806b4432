/* Storing scales and minima of sixteen rows to a panel. */
#pragma once

#include "dequant/kernels/words.h"
#include "dequant/forms.h"

/* Store the scales of four groups, a byte of each lane of `bytes` for each. */
INLINE void put_four_scales(struct dequant_panel *panel, size_t first_group, words bytes)
{
    for (size_t i = 0; i < 4; i++)
        words_put_pair(panel->scales[first_group + i][0], words_byte(bytes, i),
                       words_byte(bytes, i));
}

/* Store the minima of four groups. */
INLINE void put_four_mins(struct dequant_panel *panel, size_t first_group, words bytes)
{
    for (size_t i = 0; i < 4; i += 2)
        words_put_pair(panel->mins[(first_group + i) / 2][0], words_byte(bytes, i),
                       words_byte(bytes, i + 1));
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

/* The same for four groups, whose scales are the bytes of the lanes. */
INLINE void put_four_scales_of_zero(struct dequant_panel *panel, size_t first_group, words bytes,
                                    unsigned zero)
{
    for (size_t i = 0; i < 4; i += 2)
        put_scales_of_zero(panel, first_group + i, words_byte(bytes, i), words_byte(bytes, i + 1),
                           zero);
}
