/*
 * Vector functions for quantizing, in addition to simd.h: the greatest magnitude, and rounding to
 * bytes. Floats to be rounded must be finite, and the results within -128 and 127.
 */
#ifndef GGUFS_DEQUANT_KERNELS_SIMD_QUANTIZE_H
#define GGUFS_DEQUANT_KERNELS_SIMD_QUANTIZE_H

#include "dequant/kernels/simd.h"

/*
 * magnitudes: the bits of sixteen floats without sign; compared as integers, NaNs are greatest.
 * magnitudes_find() returns the index of the first of 32 floats with these bits; one must have
 * them.
 */
#if defined(__AVX512F__)

typedef __m512i magnitudes;

static inline magnitudes magnitudes_of(simd_floats v)
{
    return _mm512_and_si512(_mm512_castps_si512(v.v), _mm512_set1_epi32(0x7fffffff));
}

static inline magnitudes magnitudes_max(magnitudes a, magnitudes b)
{
    return _mm512_max_epi32(a, b);
}

static inline uint32_t magnitudes_greatest(magnitudes v)
{
    return (uint32_t)_mm512_reduce_max_epi32(v);
}

static inline unsigned magnitudes_find(simd_floats low, simd_floats high, uint32_t bits)
{
    const __m512i wanted = _mm512_set1_epi32((int)bits);
    const unsigned in_low = _mm512_cmpeq_epi32_mask(magnitudes_of(low), wanted);
    const unsigned in_high = _mm512_cmpeq_epi32_mask(magnitudes_of(high), wanted);

    return (unsigned)__builtin_ctz(in_low | in_high << 16);
}

/* The nearest integers, ties to even. */
static inline simd_bytes simd_round_to_bytes(simd_floats v)
{
    return _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v.v));
}

/* The same without the fraction. */
static inline simd_bytes simd_truncate_to_bytes(simd_floats v)
{
    return _mm512_cvtepi32_epi8(_mm512_cvttps_epi32(v.v));
}

/* `magnitude` with the signs of v. */
static inline simd_floats simd_copy_signs(float magnitude, simd_floats v)
{
    const __m512 all = _mm512_set1_ps(magnitude);

    return (simd_floats){_mm512_or_ps(all, _mm512_and_ps(v.v, _mm512_set1_ps(-0.0f)))};
}

#elif defined(__AVX2__)

typedef __m256i magnitudes;

static inline magnitudes magnitudes_max(magnitudes a, magnitudes b)
{
    return _mm256_max_epi32(a, b);
}

static inline magnitudes magnitudes_of(simd_floats v)
{
    const __m256i mask = _mm256_set1_epi32(0x7fffffff);

    return magnitudes_max(_mm256_and_si256(_mm256_castps_si256(v.low), mask),
                          _mm256_and_si256(_mm256_castps_si256(v.high), mask));
}

static inline uint32_t magnitudes_greatest(magnitudes v)
{
    __m128i most = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));

    most = _mm_max_epi32(most, _mm_shuffle_epi32(most, 0x4e));
    most = _mm_max_epi32(most, _mm_shuffle_epi32(most, 0xb1));
    return (uint32_t)_mm_cvtsi128_si32(most);
}

static inline unsigned magnitudes_mask(__m256 v, __m256i wanted)
{
    const __m256i bits = _mm256_and_si256(_mm256_castps_si256(v), _mm256_set1_epi32(0x7fffffff));

    return (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(bits, wanted)));
}

static inline unsigned magnitudes_find(simd_floats low, simd_floats high, uint32_t bits)
{
    const __m256i wanted = _mm256_set1_epi32((int)bits);
    const unsigned in_low = magnitudes_mask(low.low, wanted) | magnitudes_mask(low.high, wanted)
                                                                   << 8;
    const unsigned in_high = magnitudes_mask(high.low, wanted) | magnitudes_mask(high.high, wanted)
                                                                     << 8;

    return (unsigned)__builtin_ctz(in_low | in_high << 16);
}

/* Sixteen integers, the lower eight in `low`, as bytes. */
static inline simd_bytes simd_pack(__m256i low, __m256i high)
{
    const __m256i pairs = _mm256_packs_epi32(low, high);
    const __m256i ordered = _mm256_permute4x64_epi64(pairs, 0xd8);

    return _mm_packs_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
}

static inline simd_bytes simd_round_to_bytes(simd_floats v)
{
    return simd_pack(_mm256_cvtps_epi32(v.low), _mm256_cvtps_epi32(v.high));
}

static inline simd_bytes simd_truncate_to_bytes(simd_floats v)
{
    return simd_pack(_mm256_cvttps_epi32(v.low), _mm256_cvttps_epi32(v.high));
}

static inline simd_floats simd_copy_signs(float magnitude, simd_floats v)
{
    const __m256 all = _mm256_set1_ps(magnitude), sign = _mm256_set1_ps(-0.0f);

    return (simd_floats){_mm256_or_ps(all, _mm256_and_ps(v.low, sign)),
                         _mm256_or_ps(all, _mm256_and_ps(v.high, sign))};
}

#else

typedef uint32x4_t magnitudes;

static inline magnitudes magnitudes_max(magnitudes a, magnitudes b)
{
    return vmaxq_u32(a, b);
}

static inline magnitudes magnitudes_of(simd_floats v)
{
    uint32x4_t all[4];

    for (size_t i = 0; i < 4; i++)
        all[i] = vreinterpretq_u32_f32(vabsq_f32(v.v[i]));
    return vmaxq_u32(vmaxq_u32(all[0], all[1]), vmaxq_u32(all[2], all[3]));
}

static inline uint32_t magnitudes_greatest(magnitudes v)
{
    return vmaxvq_u32(v);
}

/* Four bits for each float, set where it has these bits. */
static inline uint64_t magnitudes_mask(simd_floats v, uint32_t bits)
{
    const uint32x4_t wanted = vdupq_n_u32(bits);
    uint16x4_t found[4];
    uint8x16_t bytes;

    for (size_t i = 0; i < 4; i++)
        found[i] = vmovn_u32(vceqq_u32(vreinterpretq_u32_f32(vabsq_f32(v.v[i])), wanted));
    bytes = vcombine_u8(vmovn_u16(vcombine_u16(found[0], found[1])),
                        vmovn_u16(vcombine_u16(found[2], found[3])));
    return vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(bytes), 4)), 0);
}

static inline unsigned magnitudes_find(simd_floats low, simd_floats high, uint32_t bits)
{
    const uint64_t in_low = magnitudes_mask(low, bits), in_high = magnitudes_mask(high, bits);

    return (unsigned)(in_low != 0 ? __builtin_ctzll(in_low) / 4
                                  : 16 + __builtin_ctzll(in_high) / 4);
}

static inline simd_bytes simd_pack(const int32x4_t v[4])
{
    return vreinterpretq_u8_s8(
        vcombine_s8(vmovn_s16(vcombine_s16(vmovn_s32(v[0]), vmovn_s32(v[1]))),
                    vmovn_s16(vcombine_s16(vmovn_s32(v[2]), vmovn_s32(v[3])))));
}

static inline simd_bytes simd_round_to_bytes(simd_floats v)
{
    return simd_pack((int32x4_t[]){vcvtnq_s32_f32(v.v[0]), vcvtnq_s32_f32(v.v[1]),
                                   vcvtnq_s32_f32(v.v[2]), vcvtnq_s32_f32(v.v[3])});
}

static inline simd_bytes simd_truncate_to_bytes(simd_floats v)
{
    return simd_pack((int32x4_t[]){vcvtq_s32_f32(v.v[0]), vcvtq_s32_f32(v.v[1]),
                                   vcvtq_s32_f32(v.v[2]), vcvtq_s32_f32(v.v[3])});
}

static inline simd_floats simd_copy_signs(float magnitude, simd_floats v)
{
    const uint32x4_t sign = vdupq_n_u32(0x80000000);
    simd_floats out;

    for (size_t i = 0; i < 4; i++)
        out.v[i] = vbslq_f32(sign, v.v[i], vdupq_n_f32(magnitude));
    return out;
}

#endif

/* The nearest integers, ties away from zero. */
static inline simd_bytes simd_round_away_to_bytes(simd_floats v)
{
    /* The float below 0.5: half an integer still reaches the next one, and nothing below does. */
    return simd_truncate_to_bytes(simd_add_floats(v, simd_copy_signs(0x1.fffffep-2f, v)));
}

#endif
