/*
 * Vectors of 32-bit lanes as wide as the instruction set of this compilation has them; without
 * vectors beyond the architecture's baseline, four lanes. Kernels give the same bits with any width
 * if they compute lane by lane, and sum up DEQUANT_DOT_LANES sums side by side (dequant/dot.h).
 * Arithmetic is written with the operators that GCC and clang have for vectors.
 */
#pragma once

#include "dequant/dot.h"
#include "dequant/kernels/specialize.h"

#include <stddef.h>
#include <stdint.h>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

/* FLOAT_PARTS vectors hold DEQUANT_DOT_LANES floats. */
#if defined(__AVX512F__)
enum { FLOAT_WIDTH = 16 };
#elif defined(__AVX2__)
enum { FLOAT_WIDTH = 8 };
#else
enum { FLOAT_WIDTH = 4 };
#endif
enum { FLOAT_PARTS = DEQUANT_DOT_LANES / FLOAT_WIDTH };

typedef float float_vector __attribute__((vector_size(FLOAT_WIDTH * sizeof(float))));
typedef int32_t int_vector __attribute__((vector_size(FLOAT_WIDTH * sizeof(int32_t))));

/* The address may be any. */
INLINE float_vector float_load(const void *from)
{
    typedef float_vector unaligned __attribute__((aligned(1), may_alias));

    return *(const unaligned *)from;
}

INLINE void float_store(void *to, float_vector v)
{
    typedef float_vector unaligned __attribute__((aligned(1), may_alias));

    *(unaligned *)to = v;
}

/* The number in every lane. */
INLINE float_vector float_all(float value)
{
    return value - (float_vector){0};
}

/* a * b + c with one rounding. By intrinsics, because compilers contract only sometimes. */
INLINE float_vector float_fused(float_vector a, float_vector b, float_vector c)
{
#if defined(__AVX512F__)
    return (float_vector)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__)
    return (float_vector)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__ARM_NEON)
    return (float_vector)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    for (size_t i = 0; i < FLOAT_WIDTH; i++)
        c[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return c;
#endif
}
