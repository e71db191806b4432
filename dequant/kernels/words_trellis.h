/* The values of trellis types (dequant/ik_kt_blocks.h), 16 at a time. */
#ifndef GGUFS_DEQUANT_KERNELS_WORDS_TRELLIS_H
#define GGUFS_DEQUANT_KERNELS_WORDS_TRELLIS_H

#include "dequant/ik_kt_blocks.h"
#include "dequant/kernels/words_math.h"

#if defined(__AVX512F__)

static inline words words_load(const uint32_t from[16])
{
    return _mm512_loadu_si512(from);
}

/* Eight lanes of a, then eight of b. */
static inline words words_two(uint32_t a, uint32_t b)
{
    return _mm512_mask_set1_epi32(_mm512_set1_epi32((int)a), 0xff00, (int)b);
}

/* Four lanes of each. */
static inline words words_four(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return _mm512_mask_set1_epi32(_mm512_mask_set1_epi32(words_two(a, c), 0x00f0, (int)b), 0xf000,
                                  (int)d);
}

/* The lower halves of the products. */
static inline words words_mul(words a, words b)
{
    return _mm512_mullo_epi32(a, b);
}

/* The sum of each lane's bytes, which are below 128. */
static inline words words_sum_bytes(words v)
{
    const __m512i pairs = _mm512_maddubs_epi16(v, _mm512_set1_epi8(1));

    return _mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
}

/* Signed numbers. */
static inline simd_floats words_to_floats(words v)
{
    return (simd_floats){_mm512_cvtepi32_ps(v)};
}

static inline words words_abs(words v)
{
    return _mm512_abs_epi32(v);
}

/* 16 bytes, one in each lane. */
static inline words words_of_bytes(simd_bytes bytes)
{
    return _mm512_cvtepu8_epi32(bytes);
}

#elif defined(__AVX2__)

static inline words words_load(const uint32_t from[16])
{
    return (words){_mm256_loadu_si256((const void *)from),
                   _mm256_loadu_si256((const void *)(from + 8))};
}

static inline words words_two(uint32_t a, uint32_t b)
{
    return (words){_mm256_set1_epi32((int)a), _mm256_set1_epi32((int)b)};
}

static inline words words_four(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return (words){_mm256_set_m128i(_mm_set1_epi32((int)b), _mm_set1_epi32((int)a)),
                   _mm256_set_m128i(_mm_set1_epi32((int)d), _mm_set1_epi32((int)c))};
}

static inline words words_mul(words a, words b)
{
    return (words){_mm256_mullo_epi32(a.low, b.low), _mm256_mullo_epi32(a.high, b.high)};
}

static inline words words_sum_bytes(words v)
{
    const __m256i ones = _mm256_set1_epi8(1), pairs = _mm256_set1_epi16(1);

    return (words){_mm256_madd_epi16(_mm256_maddubs_epi16(v.low, ones), pairs),
                   _mm256_madd_epi16(_mm256_maddubs_epi16(v.high, ones), pairs)};
}

static inline simd_floats words_to_floats(words v)
{
    return (simd_floats){_mm256_cvtepi32_ps(v.low), _mm256_cvtepi32_ps(v.high)};
}

static inline words words_abs(words v)
{
    return (words){_mm256_abs_epi32(v.low), _mm256_abs_epi32(v.high)};
}

static inline words words_of_bytes(simd_bytes bytes)
{
    return (words){_mm256_cvtepu8_epi32(bytes),
                   _mm256_cvtepu8_epi32(_mm_unpackhi_epi64(bytes, bytes))};
}

#elif defined(__ARM_NEON)

static inline words words_load(const uint32_t from[16])
{
    WORDS_EACH(vld1q_u32(from + 4 * i));
}

static inline words words_two(uint32_t a, uint32_t b)
{
    WORDS_EACH(vdupq_n_u32(i < 2 ? a : b));
}

static inline words words_four(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return (words){{vdupq_n_u32(a), vdupq_n_u32(b), vdupq_n_u32(c), vdupq_n_u32(d)}};
}

static inline words words_mul(words a, words b)
{
    WORDS_EACH(vmulq_u32(a.v[i], b.v[i]));
}

static inline words words_sum_bytes(words v)
{
    WORDS_EACH(vpaddlq_u16(vpaddlq_u8(vreinterpretq_u8_u32(v.v[i]))));
}

static inline simd_floats words_to_floats(words v)
{
    simd_floats result;

    for (size_t i = 0; i < 4; i++)
        result.v[i] = vcvtq_f32_s32(vreinterpretq_s32_u32(v.v[i]));
    return result;
}

static inline words words_abs(words v)
{
    WORDS_EACH(vreinterpretq_u32_s32(vabsq_s32(vreinterpretq_s32_u32(v.v[i]))));
}

static inline words words_of_bytes(simd_bytes bytes)
{
    const uint16x8_t low = vmovl_u8(vget_low_u8(bytes)), high = vmovl_high_u8(bytes);

    return (words){{vmovl_u16(vget_low_u16(low)), vmovl_high_u16(low),
                    vmovl_u16(vget_low_u16(high)), vmovl_high_u16(high)}};
}

#endif

/* The values of states, -126 to 126. */
static inline words words_trellis_values(words states)
{
    const words bits = words_and(states, words_all(DEQUANT_TRELLIS_BITS));

    return words_sub(words_sum_bytes(bits), words_all(126));
}

#endif
