/*
 * Operations of integer products. Each 32-bit lane of an int_vector belongs to a row of a panel;
 * FLOAT_PARTS vectors hold its sixteen rows, and each is computed on its own.
 *
 * An accumulator sums up products of bytes: its lanes have 16 bits twice with AVX2, which hold the
 * products of LANES_DEPTH steps, and 32 bits elsewhere.
 */
#pragma once

#include "dequant/kernels/simd.h"

INLINE int_vector lanes_load(const void *from)
{
    return (int_vector)float_load(from);
}

INLINE int_vector lanes_all(int32_t value)
{
    return value - (int_vector){0};
}

INLINE float_vector lanes_to_floats(int_vector v)
{
    return __builtin_convertvector(v, float_vector);
}

/* Return sum + scale * accumulator. Both halves of a lane of `scale` hold the scale. */
#if defined(__AVX512F__) || !defined(__AVX2__)
INLINE int_vector lanes_add_scaled(int_vector sum, int_vector accumulator, int_vector scale)
{
    return sum + accumulator * (scale >> 16);
}

INLINE int_vector lanes_add_accumulator(int_vector sum, int_vector accumulator)
{
    return sum + accumulator;
}
#endif

#if defined(__AVX512F__)

enum { LANES_COLUMNS = 8 };

/* Add to each lane the products of its four unsigned bytes and four signed bytes of x. */
INLINE int_vector lanes_dot(int_vector sum, int_vector q, int_vector x)
{
    return (int_vector)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)q, (__m512i)x);
}

/* The same for bytes above 127. */
INLINE int_vector lanes_dot_wide(int_vector sum, int_vector q, int_vector x)
{
    return lanes_dot(sum, q, x);
}

/*
 * The same for sums that are exact as floats; the lanes hold the floats' bits. Conversion and fused
 * multiply-add take fewer steps than an integer multiplication.
 */
INLINE int_vector lanes_add_scaled_float(int_vector sum, int_vector accumulator, int_vector scale)
{
    return (int_vector)float_fused(lanes_to_floats(accumulator), lanes_to_floats(scale >> 16),
                                   (float_vector)sum);
}

/* Add the products of the two halves of each lane. */
INLINE int_vector lanes_dot_pairs(int_vector sum, int_vector a, int_vector b)
{
    return (int_vector)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)a, (__m512i)b);
}

#define LANES_FLOAT_SUMS 1
/* Steps with bytes of up to `greatest` that an accumulator holds. */
#define LANES_DEPTH(greatest) 64
/* Bytes above 127 need no care. */
#define LANES_SIGN_WIDE 0
#define LANES_PIN(sum)  ((void)0)

#elif defined(__AVX2__)

enum { LANES_COLUMNS = 4 };

INLINE int_vector lanes_dot(int_vector sum, int_vector q, int_vector x)
{
    return (int_vector)_mm256_add_epi16((__m256i)sum, _mm256_maddubs_epi16((__m256i)q, (__m256i)x));
}

/* For q up to 255: multiplies q - 128, because sums of products of q could overflow. */
INLINE int_vector lanes_dot_wide(int_vector sum, int_vector q, int_vector x)
{
    const __m256i signed_q = (__m256i)(q ^ (int32_t)0x80808080);

    return lanes_dot(sum, (int_vector)_mm256_abs_epi8(signed_q),
                     (int_vector)_mm256_sign_epi8((__m256i)x, signed_q));
}

INLINE int_vector lanes_dot_pairs(int_vector sum, int_vector a, int_vector b)
{
    return sum + (int_vector)_mm256_madd_epi16((__m256i)a, (__m256i)b);
}

INLINE int_vector lanes_add_scaled(int_vector sum, int_vector accumulator, int_vector scale)
{
    return lanes_dot_pairs(sum, accumulator, scale);
}

INLINE int_vector lanes_add_accumulator(int_vector sum, int_vector accumulator)
{
    return lanes_dot_pairs(sum, accumulator, lanes_all(0x00010001));
}

/* 16 bits hold 32767; a step adds two products of at most greatest * 127. */
#define LANES_DEPTH(greatest)                                                                      \
    ((greatest) <= 15 ? 8 : (greatest) <= 31 ? 4 : (greatest) <= 63 ? 2 : 1)
#define LANES_SIGN_WIDE 1
/* Keep long sums in their order: for a tree of sums there are not enough registers. */
#define LANES_PIN(sum)  __asm__("" : "+x"(sum))

#elif defined(__ARM_NEON)

enum { LANES_COLUMNS = 4 };

INLINE int_vector lanes_dot(int_vector sum, int_vector q, int_vector x)
{
    const int8x16_t a = (int8x16_t)q, b = (int8x16_t)x;
#if defined(__ARM_FEATURE_DOTPROD)
    return (int_vector)vdotq_s32((int32x4_t)sum, a, b);
#else
    const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(a), vget_low_s8(b)));
    const int32x4_t high = vpaddlq_s16(vmull_s8(vget_high_s8(a), vget_high_s8(b)));

    return sum + (int_vector)vpaddq_s32(low, high);
#endif
}

/* For q up to 255: multiplies q - 128, a signed byte. */
INLINE int_vector lanes_dot_wide(int_vector sum, int_vector q, int_vector x)
{
    return lanes_dot(sum, q ^ (int32_t)0x80808080, x);
}

INLINE int_vector lanes_dot_pairs(int_vector sum, int_vector a, int_vector b)
{
    return sum + (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
}

#define LANES_DEPTH(greatest) 64
#define LANES_SIGN_WIDE       1
#define LANES_PIN(sum)        ((void)0)

#endif

#if !defined(LANES_FLOAT_SUMS)
#define LANES_FLOAT_SUMS 0

INLINE int_vector lanes_add_scaled_float(int_vector sum, int_vector accumulator, int_vector scale)
{
    return lanes_add_scaled(sum, accumulator, scale);
}
#endif
