/* Arithmetic and tables on the vectors of words.h. */
#ifndef GGUFS_DEQUANT_KERNELS_WORDS_MATH_H
#define GGUFS_DEQUANT_KERNELS_WORDS_MATH_H

#include "dequant/kernels/words.h"

#if defined(__AVX512F__)

static inline words words_sub(words a, words b)
{
    return _mm512_sub_epi32(a, b);
}

static inline words words_add_bytes(words a, words b)
{
    return _mm512_add_epi8(a, b);
}

/* Multiply 16-bit numbers; the lower halves of the products. */
static inline words words_mul_pairs(words a, words b)
{
    return _mm512_mullo_epi16(a, b);
}

/* The floats that the lanes hold the bits of. */
static inline simd_floats words_as_floats(words v)
{
    return (simd_floats){_mm512_castsi512_ps(v)};
}

#elif defined(__AVX2__)

static inline words words_sub(words a, words b)
{
    return (words){_mm256_sub_epi32(a.low, b.low), _mm256_sub_epi32(a.high, b.high)};
}

static inline words words_add_bytes(words a, words b)
{
    return (words){_mm256_add_epi8(a.low, b.low), _mm256_add_epi8(a.high, b.high)};
}

static inline words words_mul_pairs(words a, words b)
{
    return (words){_mm256_mullo_epi16(a.low, b.low), _mm256_mullo_epi16(a.high, b.high)};
}

static inline simd_floats words_as_floats(words v)
{
    return (simd_floats){_mm256_castsi256_ps(v.low), _mm256_castsi256_ps(v.high)};
}

#elif defined(__ARM_NEON)

static inline words words_sub(words a, words b)
{
    WORDS_EACH(vsubq_u32(a.v[i], b.v[i]));
}

static inline words words_add_bytes(words a, words b)
{
    WORDS_EACH(
        vreinterpretq_u32_u8(vaddq_u8(vreinterpretq_u8_u32(a.v[i]), vreinterpretq_u8_u32(b.v[i]))));
}

static inline words words_mul_pairs(words a, words b)
{
    WORDS_EACH(vreinterpretq_u32_u16(
        vmulq_u16(vreinterpretq_u16_u32(a.v[i]), vreinterpretq_u16_u32(b.v[i]))));
}

static inline simd_floats words_as_floats(words v)
{
    simd_floats result;

    for (size_t i = 0; i < 4; i++)
        result.v[i] = vreinterpretq_f32_u32(v.v[i]);
    return result;
}

#endif

#endif
