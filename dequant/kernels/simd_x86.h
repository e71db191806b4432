/* The vectors of simd.h for AVX2, with the shorter instructions of AVX-512 where it has them. */
#ifndef GGUFS_DEQUANT_KERNELS_SIMD_X86_H
#define GGUFS_DEQUANT_KERNELS_SIMD_X86_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef __m128i simd_bytes;

static inline simd_bytes simd_load(const void *from)
{
    return _mm_loadu_si128(from);
}

/* Eight bytes, and zeros above. */
static inline simd_bytes simd_load_8(const void *from)
{
    return _mm_loadl_epi64(from);
}

static inline void simd_store_bytes(void *to, simd_bytes v)
{
    _mm_storeu_si128(to, v);
}

static inline simd_bytes simd_all(int byte)
{
    return _mm_set1_epi8((char)byte);
}

/* Two or four numbers, the first in the lowest bytes. */
static inline simd_bytes simd_two(uint64_t low, uint64_t high)
{
    return _mm_set_epi64x((long long)high, (long long)low);
}

static inline simd_bytes simd_four(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return _mm_set_epi32((int)d, (int)c, (int)b, (int)a);
}

static inline simd_bytes simd_and(simd_bytes a, simd_bytes b)
{
    return _mm_and_si128(a, b);
}

static inline simd_bytes simd_or(simd_bytes a, simd_bytes b)
{
    return _mm_or_si128(a, b);
}

static inline simd_bytes simd_xor(simd_bytes a, simd_bytes b)
{
    return _mm_xor_si128(a, b);
}

static inline simd_bytes simd_add(simd_bytes a, simd_bytes b)
{
    return _mm_add_epi8(a, b);
}

static inline simd_bytes simd_sub(simd_bytes a, simd_bytes b)
{
    return _mm_sub_epi8(a, b);
}

/* Shift each byte on its own, as unsigned. */
static inline simd_bytes simd_shift_right(simd_bytes v, int n)
{
    return _mm_and_si128(_mm_srli_epi16(v, n), _mm_set1_epi8((char)(255 >> n)));
}

static inline simd_bytes simd_shift_left(simd_bytes v, int n)
{
    return _mm_and_si128(_mm_slli_epi16(v, n), _mm_set1_epi8((char)(255 << n)));
}

/* -1 where an unsigned byte is at least `least`, else 0. */
static inline simd_bytes simd_at_least(simd_bytes v, int least)
{
    return _mm_cmpeq_epi8(_mm_max_epu8(v, simd_all(least)), v);
}

/* Entries of a table of 16 bytes; the indices are below 16. */
static inline simd_bytes simd_look_up(simd_bytes table, simd_bytes indices)
{
    return _mm_shuffle_epi8(table, indices);
}

/* Entries of a table of n times 16 bytes, at most 128. */
static inline simd_bytes simd_look_up_long(const int8_t *table, size_t n, simd_bytes indices)
{
    simd_bytes values = simd_look_up(simd_load(table), indices);

    /* Step i turns entries of part i - 1 into part i's, except where the index is below 0. */
    for (size_t i = 1; i < n; i++) {
        const simd_bytes change =
            simd_xor(simd_load(table + 16 * i - 16), simd_load(table + 16 * i));

        indices = simd_sub(indices, simd_all(16));
        values = simd_xor(values, simd_look_up(change, indices));
    }
    return values;
}

#if defined(__AVX512F__)

/* The bytes for which a bit is set, bit 0 for the first; 0 elsewhere. */
static inline simd_bytes simd_keep_where(simd_bytes v, uint16_t bits)
{
    return _mm_maskz_mov_epi8(bits, v);
}

/* Negate these bytes. */
static inline simd_bytes simd_negate_where(simd_bytes v, uint16_t bits)
{
    return _mm_mask_sub_epi8(v, bits, _mm_setzero_si128(), v);
}

#else

/* -1 where a bit is set, else 0. */
static inline simd_bytes simd_mask(uint16_t bits)
{
    const simd_bytes places = _mm_set1_epi64x((long long)0x8040201008040201);
    const simd_bytes spread = _mm_shuffle_epi8(
        _mm_cvtsi32_si128(bits), _mm_set_epi8(1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0));

    return _mm_cmpeq_epi8(_mm_and_si128(spread, places), places);
}

static inline simd_bytes simd_keep_where(simd_bytes v, uint16_t bits)
{
    return simd_and(v, simd_mask(bits));
}

static inline simd_bytes simd_negate_where(simd_bytes v, uint16_t bits)
{
    const simd_bytes mask = simd_mask(bits);

    return simd_sub(simd_xor(v, mask), mask);
}

#endif

/* Interleave the lower (upper) halves of a and b by 1, 2, 4 or 8 bytes. */
static inline simd_bytes simd_zip_low_1(simd_bytes a, simd_bytes b)
{
    return _mm_unpacklo_epi8(a, b);
}

static inline simd_bytes simd_zip_high_1(simd_bytes a, simd_bytes b)
{
    return _mm_unpackhi_epi8(a, b);
}

static inline simd_bytes simd_zip_low_2(simd_bytes a, simd_bytes b)
{
    return _mm_unpacklo_epi16(a, b);
}

static inline simd_bytes simd_zip_high_2(simd_bytes a, simd_bytes b)
{
    return _mm_unpackhi_epi16(a, b);
}

static inline simd_bytes simd_zip_low_4(simd_bytes a, simd_bytes b)
{
    return _mm_unpacklo_epi32(a, b);
}

static inline simd_bytes simd_zip_low_8(simd_bytes a, simd_bytes b)
{
    return _mm_unpacklo_epi64(a, b);
}

static inline simd_bytes simd_zip_high_8(simd_bytes a, simd_bytes b)
{
    return _mm_unpackhi_epi64(a, b);
}

static inline float simd_f16(uint16_t half)
{
    return _cvtsh_ss(half);
}

/* To nearest, ties to even. */
static inline uint16_t simd_to_f16(float value)
{
    return _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT);
}

/* ---- 16 floats ---- */

#if defined(__AVX512F__)

typedef struct {
    __m512 v;
} simd_floats;

static inline simd_floats simd_all_floats(float value)
{
    return (simd_floats){_mm512_set1_ps(value)};
}

/* Eight times `low`, then eight times `high`. */
static inline simd_floats simd_halves(float low, float high)
{
    return (simd_floats){_mm512_mask_blend_ps(0xff00, _mm512_set1_ps(low), _mm512_set1_ps(high))};
}

/* The 16 floats of signed bytes. */
static inline simd_floats simd_floats_of(simd_bytes bytes)
{
    return (simd_floats){_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))};
}

static inline simd_floats simd_mul(simd_floats a, simd_floats b)
{
    return (simd_floats){_mm512_mul_ps(a.v, b.v)};
}

static inline simd_floats simd_add_floats(simd_floats a, simd_floats b)
{
    return (simd_floats){_mm512_add_ps(a.v, b.v)};
}

static inline simd_floats simd_sub_floats(simd_floats a, simd_floats b)
{
    return (simd_floats){_mm512_sub_ps(a.v, b.v)};
}

static inline void simd_store(float *out, simd_floats floats)
{
    _mm512_storeu_ps(out, floats.v);
}

static inline simd_floats simd_load_floats(const void *from)
{
    return (simd_floats){_mm512_loadu_ps(from)};
}

static inline simd_floats simd_load_f16(const void *from)
{
    return (simd_floats){_mm512_cvtph_ps(_mm256_loadu_si256(from))};
}

static inline simd_floats simd_load_bf16(const void *from)
{
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(from));

    return (simd_floats){_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}

static inline simd_floats simd_load_i16(const void *from)
{
    return (simd_floats){_mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(_mm256_loadu_si256(from)))};
}

static inline simd_floats simd_load_i32(const void *from)
{
    return (simd_floats){_mm512_cvtepi32_ps(_mm512_loadu_si512(from))};
}

static inline simd_floats simd_load_i64(const void *from)
{
    const __m256 low = _mm512_cvtepi64_ps(_mm512_loadu_si512(from));
    const __m256 high = _mm512_cvtepi64_ps(_mm512_loadu_si512((const char *)from + 64));

    return (simd_floats){_mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1)};
}

static inline simd_floats simd_load_f64(const void *from)
{
    const __m256 low = _mm512_cvtpd_ps(_mm512_loadu_pd(from));
    const __m256 high = _mm512_cvtpd_ps(_mm512_loadu_pd((const char *)from + 64));

    return (simd_floats){_mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1)};
}

static inline void simd_store_f16(void *out, simd_floats floats)
{
    _mm256_storeu_si256(out, _mm512_cvtps_ph(floats.v, _MM_FROUND_TO_NEAREST_INT));
}

static inline void simd_store_bf16(void *out, simd_floats floats)
{
    const __m512i bits = _mm512_castps_si512(floats.v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded =
        _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x00400000));
    const __mmask16 is_nan = _mm512_cmp_ps_mask(floats.v, floats.v, _CMP_UNORD_Q);
    const __m512i chosen = _mm512_mask_mov_epi32(rounded, is_nan, quiet);

    _mm256_storeu_si256(out, _mm512_cvtepi32_epi16(_mm512_srli_epi32(chosen, 16)));
}

#else

typedef struct {
    __m256 low, high;
} simd_floats;

static inline simd_floats simd_all_floats(float value)
{
    return (simd_floats){_mm256_set1_ps(value), _mm256_set1_ps(value)};
}

/* Eight times `low`, then eight times `high`. */
static inline simd_floats simd_halves(float low, float high)
{
    return (simd_floats){_mm256_set1_ps(low), _mm256_set1_ps(high)};
}

/* The 16 floats of signed bytes. */
static inline simd_floats simd_floats_of(simd_bytes bytes)
{
    const simd_bytes upper = _mm_unpackhi_epi64(bytes, bytes);

    return (simd_floats){_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
                         _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(upper))};
}

static inline simd_floats simd_mul(simd_floats a, simd_floats b)
{
    return (simd_floats){_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}

static inline simd_floats simd_add_floats(simd_floats a, simd_floats b)
{
    return (simd_floats){_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}

static inline simd_floats simd_sub_floats(simd_floats a, simd_floats b)
{
    return (simd_floats){_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}

static inline void simd_store(float *out, simd_floats floats)
{
    _mm256_storeu_ps(out, floats.low);
    _mm256_storeu_ps(out + 8, floats.high);
}

static inline simd_floats simd_load_floats(const void *from)
{
    return (simd_floats){_mm256_loadu_ps(from), _mm256_loadu_ps((const float *)from + 8)};
}

static inline simd_floats simd_load_f16(const void *from)
{
    const __m128i *halves = from;

    return (simd_floats){_mm256_cvtph_ps(_mm_loadu_si128(halves)),
                         _mm256_cvtph_ps(_mm_loadu_si128(halves + 1))};
}

static inline __m256 simd_load_8_bf16(const __m128i *from)
{
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(from));

    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

static inline simd_floats simd_load_bf16(const void *from)
{
    const __m128i *halves = from;

    return (simd_floats){simd_load_8_bf16(halves), simd_load_8_bf16(halves + 1)};
}

static inline __m256 simd_load_8_i16(const __m128i *from)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(_mm_loadu_si128(from)));
}

static inline simd_floats simd_load_i16(const void *from)
{
    const __m128i *halves = from;

    return (simd_floats){simd_load_8_i16(halves), simd_load_8_i16(halves + 1)};
}

static inline simd_floats simd_load_i32(const void *from)
{
    const __m256i *halves = from;

    return (simd_floats){_mm256_cvtepi32_ps(_mm256_loadu_si256(halves)),
                         _mm256_cvtepi32_ps(_mm256_loadu_si256(halves + 1))};
}

/* AVX2 can't convert 64-bit integers. Numbers of 32 bits, which real tensors hold, it can. */
static inline __m256 simd_load_8_i64(const char *from)
{
    const __m256 a = _mm256_loadu_ps((const float *)(const void *)from);
    const __m256 b = _mm256_loadu_ps((const float *)(const void *)(from + 32));
    /* The lower and the upper halves of the numbers 0 1 4 5 2 3 6 7. */
    const __m256i low = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88));
    const __m256i high = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xdd));
    float out[8];

    if (_mm256_movemask_epi8(_mm256_cmpeq_epi32(_mm256_srai_epi32(low, 31), high)) == -1)
        return _mm256_cvtepi32_ps(_mm256_permute4x64_epi64(low, 0xd8));
    for (size_t i = 0; i < 8; i++) {
        int64_t number;

        memcpy(&number, from + i * sizeof number, sizeof number);
        out[i] = (float)number;
    }
    return _mm256_loadu_ps(out);
}

static inline simd_floats simd_load_i64(const void *from)
{
    return (simd_floats){simd_load_8_i64(from), simd_load_8_i64((const char *)from + 64)};
}

static inline __m256 simd_load_8_f64(const char *from)
{
    const __m128 low = _mm256_cvtpd_ps(_mm256_loadu_pd((const double *)(const void *)from));
    const __m128 high = _mm256_cvtpd_ps(_mm256_loadu_pd((const double *)(const void *)(from + 32)));

    return _mm256_set_m128(high, low);
}

static inline simd_floats simd_load_f64(const void *from)
{
    return (simd_floats){simd_load_8_f64(from), simd_load_8_f64((const char *)from + 64)};
}

static inline void simd_store_f16(void *out, simd_floats floats)
{
    __m128i *halves = out;

    _mm_storeu_si128(halves, _mm256_cvtps_ph(floats.low, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128(halves + 1, _mm256_cvtps_ph(floats.high, _MM_FROUND_TO_NEAREST_INT));
}

/* Round to bf16, in the lower half of each 32 bits. */
static inline __m256i simd_round_bf16(__m256 floats)
{
    const __m256i bits = _mm256_castps_si256(floats);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded =
        _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x00400000));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(floats, floats, _CMP_UNORD_Q));

    return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, is_nan), 16);
}

static inline void simd_store_bf16(void *out, simd_floats floats)
{
    /* The instruction packs each half of the register on its own: put the quarters in order. */
    const __m256i packed =
        _mm256_packus_epi32(simd_round_bf16(floats.low), simd_round_bf16(floats.high));

    _mm256_storeu_si256(out, _mm256_permute4x64_epi64(packed, 0xd8));
}

#endif

#endif
