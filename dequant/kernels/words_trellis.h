/* The values of trellis types (dequant/ik_kt_blocks.h), 16 at a time. */
#pragma once

#include "dequant/ik_kt_blocks.h"
#include "dequant/kernels/words.h"

/* Eight lanes of a, then eight of b. */
INLINE words words_two(uint32_t a, uint32_t b)
{
#if defined(__AVX512F__)
    return (words){{(simd_words)_mm512_mask_set1_epi32(_mm512_set1_epi32((int)a), 0xff00, (int)b)}};
#else
    SIMD_EACH(words, (i < FLOAT_PARTS / 2 ? a : b) - (simd_words){0});
#endif
}

/* Four lanes of each. */
INLINE words words_four(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
#if defined(__AVX512F__)
    const __m512i two = (__m512i)words_two(a, c).v[0];

    return (words){{(simd_words)_mm512_mask_set1_epi32(_mm512_mask_set1_epi32(two, 0x00f0, (int)b),
                                                       0xf000, (int)d)}};
#elif defined(__AVX2__)
    return (words){{(simd_words){a, a, a, a, b, b, b, b}, (simd_words){c, c, c, c, d, d, d, d}}};
#else
    return (words){
        {a - (simd_words){0}, b - (simd_words){0}, c - (simd_words){0}, d - (simd_words){0}}};
#endif
}

/* Magnitudes of signed numbers. */
INLINE words words_abs(words v)
{
    SIMD_EACH(words, (simd_words)part_abs((int_vector)v.v[i]));
}

/* 16 bytes, one in each lane. */
INLINE words words_of_bytes(simd_bytes bytes)
{
    SIMD_EACH(words, part_of_unsigned(bytes, i));
}

/* The values of states, -126 to 126. */
INLINE words words_trellis_values(words states)
{
    SIMD_EACH(words, part_sum_bytes(states.v[i] & DEQUANT_TRELLIS_BITS) - 126);
}
