/*
 * The functions of simd.h in plain C, for the set "scalar" where the architecture's baseline has no
 * vectors that simd.h knows; simd_x86.h describes each function.
 */
#pragma once

#include "dequant/kernels/float_vectors.h"
#include "dequant/small_floats.h"

typedef uint8_t simd_bytes __attribute__((vector_size(16)));
typedef uint16_t simd_pairs __attribute__((vector_size(16)));
typedef uint32_t simd_words __attribute__((vector_size(16)));

/* By pairs: SSE2 and others shift no single bytes. */
INLINE simd_bytes simd_shift_right(simd_bytes v, int n)
{
    return (simd_bytes)((simd_pairs)v >> n) & (uint8_t)(255 >> n);
}

INLINE simd_bytes simd_shift_left(simd_bytes v, int n)
{
    return (simd_bytes)((simd_pairs)v << n) & (uint8_t)(255 << n);
}

INLINE simd_bytes simd_at_least(simd_bytes v, int least)
{
    return (simd_bytes)(v >= (uint8_t)least);
}

INLINE simd_bytes simd_look_up_long(const int8_t *table, size_t n, simd_bytes indices)
{
    for (size_t i = 0; i < sizeof indices; i++)
        indices[i] = (uint8_t)table[indices[i]];
    return indices;
}

INLINE simd_bytes simd_look_up(simd_bytes table, simd_bytes indices)
{
    return simd_look_up_long((const int8_t *)&table, 1, indices);
}

INLINE simd_bytes simd_mask(uint16_t bits)
{
    const simd_bytes places = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint64_t each = 0x0101010101010101;
    const uint64_t spread[2] = {(bits & 255) * each, (bits >> 8) * each};
    simd_bytes bytes;

    memcpy(&bytes, spread, sizeof bytes);
    return (simd_bytes)((bytes & places) != 0);
}

INLINE float simd_f16(uint16_t half)
{
    return dequant_f16_to_f32(half);
}

/* Bytes 4i to 4i + 3 as signed numbers: the upper byte of a lane that holds the byte four times. */
INLINE int_vector part_of_signed(simd_bytes v, size_t i)
{
    const simd_bytes half = i < 2 ? __builtin_shufflevector(v, v, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20,
                                                            5, 21, 6, 22, 7, 23)
                                  : __builtin_shufflevector(v, v, 8, 24, 9, 25, 10, 26, 11, 27, 12,
                                                            28, 13, 29, 14, 30, 15, 31);
    const simd_pairs pairs = (simd_pairs)half;

    return (int_vector)(i % 2 == 0
                            ? __builtin_shufflevector(pairs, pairs, 0, 8, 1, 9, 2, 10, 3, 11)
                            : __builtin_shufflevector(pairs, pairs, 4, 12, 5, 13, 6, 14, 7, 15)) >>
           24;
}

INLINE simd_words part_of_unsigned(simd_bytes v, size_t i)
{
    return (simd_words)part_of_signed(v, i) & 255;
}

INLINE simd_words part_sum_bytes(simd_words v)
{
    const simd_words pairs = (v & 0xff00ff) + ((v >> 8) & 0xff00ff);

    return (pairs & 0xffff) + (pairs >> 16);
}

INLINE int_vector part_abs(int_vector v)
{
    const int_vector minus = v >> 31;

    return (v ^ minus) - minus;
}
