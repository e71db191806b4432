/*
 * Vector functions for quantizing, in addition to simd.h: the greatest magnitude, and rounding to
 * bytes. Floats to be rounded must be finite, and the results within -128 and 127.
 */
#pragma once

#include "dequant/kernels/simd.h"

/* The bits of floats without sign; compared as integers, NaNs are greatest. */
INLINE int_vector magnitudes_of_part(float_vector v)
{
    return (int_vector)v & 0x7fffffff;
}

/* The greatest of v[i], v[i + FLOAT_WIDTH] … in lane i. */
INLINE int_vector magnitudes_of(simd_floats v)
{
    int_vector most = magnitudes_of_part(v.v[0]);

    for (size_t i = 1; i < FLOAT_PARTS; i++)
        most = part_max(most, magnitudes_of_part(v.v[i]));
    return most;
}

INLINE uint32_t magnitudes_greatest(int_vector v)
{
#if defined(__AVX512F__)
    return (uint32_t)_mm512_reduce_max_epi32((__m512i)v);
#elif defined(__AVX2__)
    __m128i most =
        _mm_max_epi32(_mm256_castsi256_si128((__m256i)v), _mm256_extracti128_si256((__m256i)v, 1));

    most = _mm_max_epi32(most, _mm_shuffle_epi32(most, 0x4e));
    most = _mm_max_epi32(most, _mm_shuffle_epi32(most, 0xb1));
    return (uint32_t)_mm_cvtsi128_si32(most);
#else
    return (uint32_t)vmaxvq_s32((int32x4_t)v);
#endif
}

/* A bit for each float of this magnitude. */
INLINE unsigned magnitudes_mask(simd_floats v, uint32_t bits)
{
    const int_vector wanted = (int32_t)bits - (int_vector){0};
    unsigned mask = 0;

    for (size_t i = 0; i < FLOAT_PARTS; i++)
        mask |= part_equal_mask(magnitudes_of_part(v.v[i]), wanted) << i * FLOAT_WIDTH;
    return mask;
}

/* The index of the first of 32 floats with these bits; one must have them. */
INLINE unsigned magnitudes_find(simd_floats low, simd_floats high, uint32_t bits)
{
    return (unsigned)__builtin_ctz(magnitudes_mask(low, bits) | magnitudes_mask(high, bits) << 16);
}

/* The nearest integers, ties to even. */
INLINE simd_bytes simd_round_to_bytes(simd_floats v)
{
    int_vector rounded[FLOAT_PARTS];

    for (size_t i = 0; i < FLOAT_PARTS; i++)
        rounded[i] = part_round(v.v[i]);
    return simd_pack(rounded);
}

/* The same without the fraction. */
INLINE simd_bytes simd_truncate_to_bytes(simd_floats v)
{
    int_vector truncated[FLOAT_PARTS];

    for (size_t i = 0; i < FLOAT_PARTS; i++)
        truncated[i] = __builtin_convertvector(v.v[i], int_vector);
    return simd_pack(truncated);
}

/* The nearest integers, ties away from zero. */
INLINE simd_bytes simd_round_away_to_bytes(simd_floats v)
{
    /* The float below 0.5: half an integer still reaches the next one, and nothing below does. */
    const float_vector half = float_all(0x1.fffffep-2f);

    for (size_t i = 0; i < FLOAT_PARTS; i++)
        v.v[i] += part_copy_signs(half, v.v[i]);
    return simd_truncate_to_bytes(v);
}
