/* The functions of simd.h for AVX2 and AVX-512: shuffles, conversions and what has no operator. */
#pragma once

#include "dequant/kernels/float_vectors.h"

#include <string.h>

typedef uint8_t simd_bytes __attribute__((vector_size(16)));
typedef uint32_t simd_words __attribute__((vector_size(FLOAT_WIDTH * sizeof(uint32_t))));

/* The intrinsic NAME for a part, and the type of its integers. */
#if defined(__AVX512F__)
#define SIMD_MM(name) _mm512_##name
typedef __m512i simd_ints;
#else
#define SIMD_MM(name) _mm256_##name
typedef __m256i simd_ints;
#endif

/* ---- 16 bytes ---- */

/* Shift each byte on its own, as unsigned. */
INLINE simd_bytes simd_shift_right(simd_bytes v, int n)
{
    return (simd_bytes)_mm_srli_epi16((__m128i)v, n) & (uint8_t)(255 >> n);
}

INLINE simd_bytes simd_shift_left(simd_bytes v, int n)
{
    return (simd_bytes)_mm_slli_epi16((__m128i)v, n) & (uint8_t)(255 << n);
}

/* -1 where an unsigned byte is at least `least`, else 0. */
INLINE simd_bytes simd_at_least(simd_bytes v, int least)
{
    return (simd_bytes)_mm_cmpeq_epi8(_mm_max_epu8((__m128i)v, _mm_set1_epi8((char)least)),
                                      (__m128i)v);
}

/* Entries of a table of 16 bytes; the indices are below 16. */
INLINE simd_bytes simd_look_up(simd_bytes table, simd_bytes indices)
{
    return (simd_bytes)_mm_shuffle_epi8((__m128i)table, (__m128i)indices);
}

/* Entries of a table of n times 16 bytes, at most 128. */
INLINE simd_bytes simd_look_up_long(const int8_t *table, size_t n, simd_bytes indices)
{
    simd_bytes parts[8], values;

    memcpy(parts, table, 16 * n);
    values = simd_look_up(parts[0], indices);
    /* Step i turns entries of part i - 1 into part i's, except where the index is below 0. */
    for (size_t i = 1; i < n; i++) {
        indices -= 16;
        values ^= simd_look_up(parts[i - 1] ^ parts[i], indices);
    }
    return values;
}

#if defined(__AVX512F__)

/* The bytes for which a bit is set, bit 0 for the first; 0 elsewhere. */
INLINE simd_bytes simd_keep_where(simd_bytes v, uint16_t bits)
{
    return (simd_bytes)_mm_maskz_mov_epi8(bits, (__m128i)v);
}

/* Negate these bytes. */
INLINE simd_bytes simd_negate_where(simd_bytes v, uint16_t bits)
{
    return (simd_bytes)_mm_mask_sub_epi8((__m128i)v, bits, _mm_setzero_si128(), (__m128i)v);
}

#else

/* -1 where a bit is set, else 0. */
INLINE simd_bytes simd_mask(uint16_t bits)
{
    const __m128i places = _mm_set1_epi64x((long long)0x8040201008040201);
    const __m128i spread = _mm_shuffle_epi8(
        _mm_cvtsi32_si128(bits), _mm_set_epi8(1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0));

    return (simd_bytes)_mm_cmpeq_epi8(_mm_and_si128(spread, places), places);
}

#endif

INLINE float simd_f16(uint16_t half)
{
    return _cvtsh_ss(half);
}

/* To nearest, ties to even. */
INLINE uint16_t simd_to_f16(float value)
{
    return _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT);
}

/* ---- Parts of 16 lanes ---- */

/* Bytes i * FLOAT_WIDTH and on as signed and as unsigned numbers. */
INLINE int_vector part_of_signed(simd_bytes v, size_t i)
{
    return (int_vector)SIMD_MM(cvtepi8_epi32)(i == 0 ? (__m128i)v
                                                     : _mm_unpackhi_epi64((__m128i)v, (__m128i)v));
}

INLINE simd_words part_of_unsigned(simd_bytes v, size_t i)
{
    return (simd_words)SIMD_MM(cvtepu8_epi32)(i == 0 ? (__m128i)v
                                                     : _mm_unpackhi_epi64((__m128i)v, (__m128i)v));
}

/* 16 bytes, repeated. */
INLINE simd_words part_repeat(simd_bytes v)
{
#if defined(__AVX512F__)
    return (simd_words)_mm512_broadcast_i32x4((__m128i)v);
#else
    return (simd_words)_mm256_broadcastsi128_si256((__m128i)v);
#endif
}

/* Look up bytes below 16 in each 16 bytes of a table. */
INLINE simd_words part_look_up(simd_words table, simd_words indices)
{
    return (simd_words)SIMD_MM(shuffle_epi8)((simd_ints)table, (simd_ints)indices);
}

/* Interleave the lower (upper) halves of each 16 bytes by 4 or 8 bytes. */
#define PART_ZIP(name, intrinsic)                                                                  \
    INLINE simd_words part_zip_##name(simd_words a, simd_words b)                                  \
    {                                                                                              \
        return (simd_words)SIMD_MM(intrinsic)((simd_ints)a, (simd_ints)b);                         \
    }
PART_ZIP(low_4, unpacklo_epi32)
PART_ZIP(high_4, unpackhi_epi32)
PART_ZIP(low_8, unpacklo_epi64)
PART_ZIP(high_8, unpackhi_epi64)
#undef PART_ZIP

/* 16 bytes of each fourth row, from row i * FLOAT_WIDTH on. */
INLINE simd_words part_gather(const uint8_t *rows, size_t row_bytes, size_t i)
{
    const size_t step = 4 * row_bytes;
    const __m128i first = _mm_loadu_si128((const void *)(rows + i * 2 * step));
    const __m128i second = _mm_loadu_si128((const void *)(rows + i * 2 * step + step));
#if defined(__AVX512F__)
    const __m512i two = _mm512_inserti32x4(_mm512_castsi128_si512(first), second, 1);
    const __m512i three =
        _mm512_inserti32x4(two, _mm_loadu_si128((const void *)(rows + 2 * step)), 2);

    return (simd_words)_mm512_inserti32x4(three, _mm_loadu_si128((const void *)(rows + 3 * step)),
                                          3);
#else
    return (simd_words)_mm256_set_m128i(second, first);
#endif
}

/* The sum of each lane's bytes, which are below 128. */
INLINE simd_words part_sum_bytes(simd_words v)
{
    const simd_ints pairs = SIMD_MM(maddubs_epi16)((simd_ints)v, SIMD_MM(set1_epi8)(1));

    return (simd_words)SIMD_MM(madd_epi16)(pairs, SIMD_MM(set1_epi16)(1));
}

INLINE int_vector part_abs(int_vector v)
{
    return (int_vector)SIMD_MM(abs_epi32)((simd_ints)v);
}

INLINE int_vector part_max(int_vector a, int_vector b)
{
    return (int_vector)SIMD_MM(max_epi32)((simd_ints)a, (simd_ints)b);
}

/* Numbers that are not negative, with the signs of v. AVX-512 has one instruction for it. */
INLINE float_vector part_copy_signs(float_vector magnitude, float_vector v)
{
    return SIMD_MM(or_ps)(magnitude, SIMD_MM(and_ps)(v, float_all(-0.0f)));
}

/* The nearest integers, ties to even. */
INLINE int_vector part_round(float_vector v)
{
    return (int_vector)SIMD_MM(cvtps_epi32)(v);
}

#if defined(__AVX512F__)

/* Signed numbers of 16 bits. */
INLINE int_vector part_load_shorts(const void *from)
{
    return (int_vector)_mm512_cvtepi16_epi32(_mm256_loadu_si256(from));
}

/* Numbers below 2^16. */
INLINE void part_store_shorts(void *to, simd_words v)
{
    _mm256_storeu_si256(to, _mm512_cvtepi32_epi16((__m512i)v));
}

INLINE float_vector part_load_f16(const void *from)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256(from));
}

INLINE void part_store_f16(void *to, float_vector v)
{
    _mm256_storeu_si256(to, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

/* The lower halves of the lanes, as f16. */
INLINE float_vector part_of_f16(simd_words v)
{
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16((__m512i)v));
}

INLINE float_vector part_load_i64(const char *from)
{
    const __m256 low = _mm512_cvtepi64_ps(_mm512_loadu_si512(from));
    const __m256 high = _mm512_cvtepi64_ps(_mm512_loadu_si512(from + 64));

    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}

INLINE float_vector part_load_f64(const char *from)
{
    const __m256 low = _mm512_cvtpd_ps(_mm512_loadu_pd(from));
    const __m256 high = _mm512_cvtpd_ps(_mm512_loadu_pd(from + 64));

    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}

/* A bit for each lane, set where a and b are equal. */
INLINE unsigned part_equal_mask(int_vector a, int_vector b)
{
    return _mm512_cmpeq_epi32_mask((__m512i)a, (__m512i)b);
}

/* 16 integers as bytes. */
INLINE simd_bytes simd_pack(const int_vector v[FLOAT_PARTS])
{
    return (simd_bytes)_mm512_cvtepi32_epi8((__m512i)v[0]);
}

#else

INLINE int_vector part_load_shorts(const void *from)
{
    return (int_vector)_mm256_cvtepi16_epi32(_mm_loadu_si128(from));
}

INLINE void part_store_shorts(void *to, simd_words v)
{
    const __m256i packed = _mm256_packus_epi32((__m256i)v, (__m256i)v);

    _mm_storeu_si128(to, _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08)));
}

INLINE float_vector part_load_f16(const void *from)
{
    return _mm256_cvtph_ps(_mm_loadu_si128(from));
}

INLINE void part_store_f16(void *to, float_vector v)
{
    _mm_storeu_si128(to, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

INLINE float_vector part_of_f16(simd_words v)
{
    const __m256i low = (__m256i)(v & 0xffff);
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0x08);

    return _mm256_cvtph_ps(_mm256_castsi256_si128(packed));
}

/* AVX2 can't convert 64-bit integers. Numbers of 32 bits, which real tensors hold, it can. */
INLINE float_vector part_load_i64(const char *from)
{
    const __m256 a = float_load(from), b = float_load(from + 32);
    /* The lower and the upper halves of the numbers 0 1 4 5 2 3 6 7. */
    const __m256i low = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88));
    const __m256i high = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xdd));
    float_vector out;

    if (_mm256_movemask_epi8(_mm256_cmpeq_epi32(_mm256_srai_epi32(low, 31), high)) == -1)
        return _mm256_cvtepi32_ps(_mm256_permute4x64_epi64(low, 0xd8));
    for (size_t i = 0; i < FLOAT_WIDTH; i++) {
        int64_t number;

        memcpy(&number, from + i * sizeof number, sizeof number);
        out[i] = (float)number;
    }
    return out;
}

INLINE float_vector part_load_f64(const char *from)
{
    const __m128 low = _mm256_cvtpd_ps(_mm256_loadu_pd((const double *)(const void *)from));
    const __m128 high = _mm256_cvtpd_ps(_mm256_loadu_pd((const double *)(const void *)(from + 32)));

    return _mm256_set_m128(high, low);
}

INLINE unsigned part_equal_mask(int_vector a, int_vector b)
{
    return (unsigned)_mm256_movemask_ps((__m256)(a == b));
}

INLINE simd_bytes simd_pack(const int_vector v[FLOAT_PARTS])
{
    const __m256i pairs = _mm256_packs_epi32((__m256i)v[0], (__m256i)v[1]);
    const __m256i ordered = _mm256_permute4x64_epi64(pairs, 0xd8);

    return (simd_bytes)_mm_packs_epi16(_mm256_castsi256_si128(ordered),
                                       _mm256_extracti128_si256(ordered, 1));
}

#endif
