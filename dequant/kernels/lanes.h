/*
 * Vectors for integer products. Each 32-bit lane belongs to a row of a panel; LANES_PARTS vectors
 * hold its sixteen rows, and each is computed on its own.
 *
 * An accumulator sums up products of bytes: its lanes have 16 bits twice with AVX2, which hold the
 * products of lanes_depth() steps, and 32 bits elsewhere.
 */
#ifndef GGUFS_DEQUANT_KERNELS_LANES_H
#define GGUFS_DEQUANT_KERNELS_LANES_H

#include "dequant/kernels/simd.h"

#if defined(__AVX512VNNI__)

enum { LANES = 16, LANES_COLUMNS = 8 };
typedef __m512i lanes;
typedef __m512 lanes_floats;

static inline lanes lanes_load(const void *from)
{
    return _mm512_loadu_si512(from);
}

static inline lanes lanes_all(int32_t value)
{
    return _mm512_set1_epi32(value);
}

/* Add to each lane the products of its four unsigned bytes and four signed bytes of x. */
static inline lanes lanes_dot(lanes sum, lanes q, lanes x)
{
    return _mm512_dpbusd_epi32(sum, q, x);
}

/* The same for bytes above 127. */
static inline lanes lanes_dot_wide(lanes sum, lanes q, lanes x)
{
    return _mm512_dpbusd_epi32(sum, q, x);
}

/* Return sum + scale * accumulator. Both halves of a lane of `scale` hold the scale. */
static inline lanes lanes_add_scaled(lanes sum, lanes accumulator, lanes scale)
{
    return _mm512_add_epi32(sum, _mm512_mullo_epi32(accumulator, _mm512_srai_epi32(scale, 16)));
}

static inline lanes lanes_add_accumulator(lanes sum, lanes accumulator)
{
    return _mm512_add_epi32(sum, accumulator);
}

/*
 * The same for sums that are exact as floats; the lanes hold the floats' bits. Conversion and fused
 * multiply-add take fewer steps than an integer multiplication.
 */
static inline lanes lanes_add_scaled_float(lanes sum, lanes accumulator, lanes scale)
{
    return _mm512_castps_si512(_mm512_fmadd_ps(_mm512_cvtepi32_ps(accumulator),
                                               _mm512_cvtepi32_ps(_mm512_srai_epi32(scale, 16)),
                                               _mm512_castsi512_ps(sum)));
}

static inline __m512 lanes_as_floats(lanes sum)
{
    return _mm512_castsi512_ps(sum);
}
#define LANES_FLOAT_SUMS 1

/* Add the products of the two halves of each lane. */
static inline lanes lanes_dot_pairs(lanes sum, lanes a, lanes b)
{
    return _mm512_dpwssd_epi32(sum, a, b);
}

static inline lanes lanes_add(lanes a, lanes b)
{
    return _mm512_add_epi32(a, b);
}

static inline lanes lanes_sub(lanes a, lanes b)
{
    return _mm512_sub_epi32(a, b);
}

static inline lanes_floats lanes_to_floats(lanes v)
{
    return _mm512_cvtepi32_ps(v);
}

static inline lanes_floats lanes_load_floats(const float *from)
{
    return _mm512_loadu_ps(from);
}

static inline void lanes_store_floats(float *to, lanes_floats v)
{
    _mm512_storeu_ps(to, v);
}

static inline lanes_floats lanes_all_floats(float value)
{
    return _mm512_set1_ps(value);
}

static inline lanes_floats lanes_scale(lanes_floats v, float factor)
{
    return _mm512_mul_ps(v, _mm512_set1_ps(factor));
}

/* a * b + c with one rounding. */
static inline lanes_floats lanes_fused(lanes_floats a, lanes_floats b, lanes_floats c)
{
    return _mm512_fmadd_ps(a, b, c);
}

/* Steps with bytes of up to `greatest` that an accumulator holds. */
#define LANES_DEPTH(greatest) 64
/* Bytes above 127 need no care. */
#define LANES_SIGN_WIDE 0

#elif defined(__AVX2__)

enum { LANES = 8, LANES_COLUMNS = 4 };
typedef __m256i lanes;
typedef __m256 lanes_floats;

static inline lanes lanes_load(const void *from)
{
    return _mm256_loadu_si256(from);
}

static inline lanes lanes_all(int32_t value)
{
    return _mm256_set1_epi32(value);
}

static inline lanes lanes_dot(lanes sum, lanes q, lanes x)
{
    return _mm256_add_epi16(sum, _mm256_maddubs_epi16(q, x));
}

/* For q up to 255: multiplies q - 128, because sums of products of q could overflow. */
static inline lanes lanes_dot_wide(lanes sum, lanes q, lanes x)
{
    const lanes signed_q = _mm256_xor_si256(q, _mm256_set1_epi8(-128));

    return _mm256_add_epi16(
        sum, _mm256_maddubs_epi16(_mm256_abs_epi8(signed_q), _mm256_sign_epi8(x, signed_q)));
}

static inline lanes lanes_add_scaled(lanes sum, lanes accumulator, lanes scale)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(accumulator, scale));
}

static inline lanes lanes_add_accumulator(lanes sum, lanes accumulator)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(accumulator, _mm256_set1_epi16(1)));
}

static inline lanes lanes_dot_pairs(lanes sum, lanes a, lanes b)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}

static inline lanes lanes_add(lanes a, lanes b)
{
    return _mm256_add_epi32(a, b);
}

static inline lanes lanes_sub(lanes a, lanes b)
{
    return _mm256_sub_epi32(a, b);
}

static inline lanes_floats lanes_to_floats(lanes v)
{
    return _mm256_cvtepi32_ps(v);
}

static inline lanes_floats lanes_load_floats(const float *from)
{
    return _mm256_loadu_ps(from);
}

static inline void lanes_store_floats(float *to, lanes_floats v)
{
    _mm256_storeu_ps(to, v);
}

static inline lanes_floats lanes_all_floats(float value)
{
    return _mm256_set1_ps(value);
}

static inline lanes_floats lanes_scale(lanes_floats v, float factor)
{
    return _mm256_mul_ps(v, _mm256_set1_ps(factor));
}

static inline lanes_floats lanes_fused(lanes_floats a, lanes_floats b, lanes_floats c)
{
    return _mm256_fmadd_ps(a, b, c);
}

/* Keep long sums in their order: for a tree of sums there are not enough registers. */
#define LANES_PIN(sum) __asm__("" : "+x"(sum))

/* 16 bits hold 32767; a step adds two products of at most greatest * 127. */
#define LANES_DEPTH(greatest)                                                                      \
    ((greatest) <= 15 ? 8 : (greatest) <= 31 ? 4 : (greatest) <= 63 ? 2 : 1)
#define LANES_SIGN_WIDE 1

#elif defined(__ARM_NEON)

enum { LANES = 4, LANES_COLUMNS = 4 };
typedef int32x4_t lanes;
typedef float32x4_t lanes_floats;

static inline lanes lanes_load(const void *from)
{
    return vreinterpretq_s32_u8(vld1q_u8(from));
}

static inline lanes lanes_all(int32_t value)
{
    return vdupq_n_s32(value);
}

static inline lanes lanes_dot(lanes sum, lanes q, lanes x)
{
    const int8x16_t a = vreinterpretq_s8_s32(q), b = vreinterpretq_s8_s32(x);
#if defined(__ARM_FEATURE_DOTPROD)
    return vdotq_s32(sum, a, b);
#else
    const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(a), vget_low_s8(b)));
    const int32x4_t high = vpaddlq_s16(vmull_s8(vget_high_s8(a), vget_high_s8(b)));

    return vaddq_s32(sum, vpaddq_s32(low, high));
#endif
}

/* For q up to 255: multiplies q - 128, a signed byte. */
static inline lanes lanes_dot_wide(lanes sum, lanes q, lanes x)
{
    const uint8x16_t bytes = vreinterpretq_u8_s32(q);

    return lanes_dot(sum, vreinterpretq_s32_u8(veorq_u8(bytes, vdupq_n_u8(128))), x);
}

static inline lanes lanes_add_scaled(lanes sum, lanes accumulator, lanes scale)
{
    return vmlaq_s32(sum, accumulator, vshrq_n_s32(scale, 16));
}

static inline lanes lanes_add_accumulator(lanes sum, lanes accumulator)
{
    return vaddq_s32(sum, accumulator);
}

static inline lanes lanes_dot_pairs(lanes sum, lanes a, lanes b)
{
    const lanes low_a = vshrq_n_s32(vshlq_n_s32(a, 16), 16);
    const lanes low_b = vshrq_n_s32(vshlq_n_s32(b, 16), 16);

    sum = vmlaq_s32(sum, low_a, low_b);
    return vmlaq_s32(sum, vshrq_n_s32(a, 16), vshrq_n_s32(b, 16));
}

static inline lanes lanes_add(lanes a, lanes b)
{
    return vaddq_s32(a, b);
}

static inline lanes lanes_sub(lanes a, lanes b)
{
    return vsubq_s32(a, b);
}

static inline lanes_floats lanes_to_floats(lanes v)
{
    return vcvtq_f32_s32(v);
}

static inline lanes_floats lanes_load_floats(const float *from)
{
    return vld1q_f32(from);
}

static inline void lanes_store_floats(float *to, lanes_floats v)
{
    vst1q_f32(to, v);
}

static inline lanes_floats lanes_all_floats(float value)
{
    return vdupq_n_f32(value);
}

static inline lanes_floats lanes_scale(lanes_floats v, float factor)
{
    return vmulq_n_f32(v, factor);
}

static inline lanes_floats lanes_fused(lanes_floats a, lanes_floats b, lanes_floats c)
{
    return vfmaq_f32(c, a, b);
}

#define LANES_DEPTH(greatest) 64
#define LANES_SIGN_WIDE       1

#endif

enum { LANES_PARTS = DEQUANT_PANEL_ROWS / LANES };

#if !defined(LANES_PIN)
#define LANES_PIN(sum) ((void)0)
#endif

#if !defined(LANES_FLOAT_SUMS)
#define LANES_FLOAT_SUMS 0

static inline lanes lanes_add_scaled_float(lanes sum, lanes accumulator, lanes scale)
{
    return lanes_add_scaled(sum, accumulator, scale);
}

static inline lanes_floats lanes_as_floats(lanes sum)
{
    return lanes_to_floats(sum);
}
#endif

#endif
