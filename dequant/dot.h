/* The summation order of dot products, part of the contract of dequant_dot_fn (dequant/types.h). */
#pragma once

#include <stddef.h>

enum { DEQUANT_DOT_LANES = 16 };

/* Add the lanes in pairs, halving their number each time. Overwrites them. */
static inline float dequant_dot_sum(float lanes[DEQUANT_DOT_LANES])
{
    for (size_t half = DEQUANT_DOT_LANES / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++)
            lanes[i] += lanes[i + half];
    return lanes[0];
}
