/* Vectors of sixteen 32-bit lanes, one for each row of a panel, for unpacking. */
#ifndef GGUFS_DEQUANT_KERNELS_WORDS_H
#define GGUFS_DEQUANT_KERNELS_WORDS_H

#include "dequant/kernels/simd.h"

/*
 * Return the pointer, hidden from the optimizer, which would otherwise keep the addresses of all
 * rows in registers and run out of them.
 */
static inline const uint8_t *words_hide(const void *pointer)
{
    __asm__("" : "+r"(pointer));
    return pointer;
}

#if defined(__AVX512F__)

typedef __m512i words;

static inline words words_all(uint32_t value)
{
    return _mm512_set1_epi32((int)value);
}

static inline words words_and(words a, words b)
{
    return _mm512_and_si512(a, b);
}

static inline words words_or(words a, words b)
{
    return _mm512_or_si512(a, b);
}

static inline words words_xor(words a, words b)
{
    return _mm512_xor_si512(a, b);
}

static inline words words_add(words a, words b)
{
    return _mm512_add_epi32(a, b);
}

/* Shift each lane as an unsigned number. */
static inline words words_right(words v, int n)
{
    return _mm512_srli_epi32(v, (unsigned)n);
}

static inline words words_left(words v, int n)
{
    return _mm512_slli_epi32(v, (unsigned)n);
}

/* Shift each lane as a signed number. */
static inline words words_right_signed(words v, int n)
{
    return _mm512_srai_epi32(v, (unsigned)n);
}

/* table[i] for each byte i, 0 to 15. */
static inline words words_lookup(const uint8_t table[16], words v)
{
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(simd_load(table)), v);
}

static inline void words_store(void *to, words v)
{
    _mm512_storeu_si512(to, v);
}

/* The floats of the lower halves, as f16. */
static inline simd_floats words_f16(words v)
{
    return (simd_floats){_mm512_cvtph_ps(_mm512_cvtepi32_epi16(v))};
}

static inline simd_floats words_negated(simd_floats v)
{
    return (simd_floats){_mm512_xor_ps(v.v, _mm512_set1_ps(-0.0F))};
}

static inline __m512i words_gather_four(const uint8_t *row, size_t group_bytes)
{
    __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const void *)row));

    v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(row + group_bytes)), 1);
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(row + 2 * group_bytes)), 2);
    return _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(row + 3 * group_bytes)), 3);
}

/* Load 16 bytes of each row: lane r of out[i] gets bytes 4i to 4i + 3 of row r. */
static inline void words_load_16(const void *rows, size_t row_bytes, words out[4])
{
    const uint8_t *bytes = words_hide(rows);
    const size_t group_bytes = 4 * row_bytes;
    const __m512i a = words_gather_four(bytes, group_bytes);
    const __m512i b = words_gather_four(bytes + row_bytes, group_bytes);
    const __m512i c = words_gather_four(bytes + 2 * row_bytes, group_bytes);
    const __m512i d = words_gather_four(bytes + 3 * row_bytes, group_bytes);
    const __m512i low_ab = _mm512_unpacklo_epi32(a, b), high_ab = _mm512_unpackhi_epi32(a, b);
    const __m512i low_cd = _mm512_unpacklo_epi32(c, d), high_cd = _mm512_unpackhi_epi32(c, d);

    out[0] = _mm512_unpacklo_epi64(low_ab, low_cd);
    out[1] = _mm512_unpackhi_epi64(low_ab, low_cd);
    out[2] = _mm512_unpacklo_epi64(high_ab, high_cd);
    out[3] = _mm512_unpackhi_epi64(high_ab, high_cd);
}

#elif defined(__AVX2__)

typedef struct {
    __m256i low, high;
} words;

static inline words words_all(uint32_t value)
{
    return (words){_mm256_set1_epi32((int)value), _mm256_set1_epi32((int)value)};
}

static inline words words_and(words a, words b)
{
    return (words){_mm256_and_si256(a.low, b.low), _mm256_and_si256(a.high, b.high)};
}

static inline words words_or(words a, words b)
{
    return (words){_mm256_or_si256(a.low, b.low), _mm256_or_si256(a.high, b.high)};
}

static inline words words_xor(words a, words b)
{
    return (words){_mm256_xor_si256(a.low, b.low), _mm256_xor_si256(a.high, b.high)};
}

static inline words words_add(words a, words b)
{
    return (words){_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
}

static inline words words_right(words v, int n)
{
    return (words){_mm256_srli_epi32(v.low, n), _mm256_srli_epi32(v.high, n)};
}

static inline words words_left(words v, int n)
{
    return (words){_mm256_slli_epi32(v.low, n), _mm256_slli_epi32(v.high, n)};
}

static inline words words_right_signed(words v, int n)
{
    return (words){_mm256_srai_epi32(v.low, n), _mm256_srai_epi32(v.high, n)};
}

static inline words words_lookup(const uint8_t table[16], words v)
{
    const __m256i both = _mm256_broadcastsi128_si256(simd_load(table));

    return (words){_mm256_shuffle_epi8(both, v.low), _mm256_shuffle_epi8(both, v.high)};
}

static inline void words_store(void *to, words v)
{
    __m256i *halves = to;

    _mm256_storeu_si256(halves, v.low);
    _mm256_storeu_si256(halves + 1, v.high);
}

static inline __m256 words_f16_half(__m256i v)
{
    const __m256i low = _mm256_and_si256(v, _mm256_set1_epi32(0xffff));
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0x08);

    return _mm256_cvtph_ps(_mm256_castsi256_si128(packed));
}

static inline simd_floats words_f16(words v)
{
    return (simd_floats){words_f16_half(v.low), words_f16_half(v.high)};
}

static inline simd_floats words_negated(simd_floats v)
{
    const __m256 sign = _mm256_set1_ps(-0.0F);

    return (simd_floats){_mm256_xor_ps(v.low, sign), _mm256_xor_ps(v.high, sign)};
}

static inline __m256i words_gather_two(const uint8_t *rows, size_t row_bytes)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)rows)),
                                   _mm_loadu_si128((const void *)(rows + 4 * row_bytes)), 1);
}

static inline void words_load_half(const uint8_t *bytes, size_t row_bytes, __m256i out[4])
{
    const __m256i a = words_gather_two(bytes, row_bytes);
    const __m256i b = words_gather_two(bytes + row_bytes, row_bytes);
    const __m256i c = words_gather_two(bytes + 2 * row_bytes, row_bytes);
    const __m256i d = words_gather_two(bytes + 3 * row_bytes, row_bytes);
    const __m256i low_ab = _mm256_unpacklo_epi32(a, b), high_ab = _mm256_unpackhi_epi32(a, b);
    const __m256i low_cd = _mm256_unpacklo_epi32(c, d), high_cd = _mm256_unpackhi_epi32(c, d);

    out[0] = _mm256_unpacklo_epi64(low_ab, low_cd);
    out[1] = _mm256_unpackhi_epi64(low_ab, low_cd);
    out[2] = _mm256_unpacklo_epi64(high_ab, high_cd);
    out[3] = _mm256_unpackhi_epi64(high_ab, high_cd);
}

static inline void words_load_16(const void *rows, size_t row_bytes, words out[4])
{
    const uint8_t *bytes = words_hide(rows);
    __m256i low[4], high[4];

    words_load_half(bytes, row_bytes, low);
    words_load_half(bytes + 8 * row_bytes, row_bytes, high);
    for (size_t i = 0; i < 4; i++)
        out[i] = (words){low[i], high[i]};
}

#elif defined(__ARM_NEON)

typedef struct {
    uint32x4_t v[4];
} words;

#define WORDS_EACH(expression)                                                                     \
    words result;                                                                                  \
    for (size_t i = 0; i < 4; i++)                                                                 \
        result.v[i] = (expression);                                                                \
    return result

static inline words words_all(uint32_t value)
{
    WORDS_EACH(vdupq_n_u32(value));
}

static inline words words_and(words a, words b)
{
    WORDS_EACH(vandq_u32(a.v[i], b.v[i]));
}

static inline words words_or(words a, words b)
{
    WORDS_EACH(vorrq_u32(a.v[i], b.v[i]));
}

static inline words words_xor(words a, words b)
{
    WORDS_EACH(veorq_u32(a.v[i], b.v[i]));
}

static inline words words_add(words a, words b)
{
    WORDS_EACH(vaddq_u32(a.v[i], b.v[i]));
}

static inline words words_right(words v, int n)
{
    WORDS_EACH(vshlq_u32(v.v[i], vdupq_n_s32(-n)));
}

static inline words words_left(words v, int n)
{
    WORDS_EACH(vshlq_u32(v.v[i], vdupq_n_s32(n)));
}

static inline words words_right_signed(words v, int n)
{
    WORDS_EACH(vreinterpretq_u32_s32(vshlq_s32(vreinterpretq_s32_u32(v.v[i]), vdupq_n_s32(-n))));
}

static inline words words_lookup(const uint8_t table[16], words v)
{
    WORDS_EACH(vreinterpretq_u32_u8(vqtbl1q_u8(vld1q_u8(table), vreinterpretq_u8_u32(v.v[i]))));
}

static inline void words_store(void *to, words v)
{
    for (size_t i = 0; i < 4; i++)
        vst1q_u8((uint8_t *)to + 16 * i, vreinterpretq_u8_u32(v.v[i]));
}

static inline simd_floats words_f16(words v)
{
    simd_floats result;

    for (size_t i = 0; i < 4; i++)
        result.v[i] = vcvt_f32_f16(vreinterpret_f16_u16(vmovn_u32(v.v[i])));
    return result;
}

static inline simd_floats words_negated(simd_floats v)
{
    for (size_t i = 0; i < 4; i++)
        v.v[i] = vnegq_f32(v.v[i]);
    return v;
}

static inline void words_load_16(const void *rows, size_t row_bytes, words out[4])
{
    for (size_t i = 0; i < 4; i++) {
        const uint8_t *bytes = (const uint8_t *)rows + 4 * i * row_bytes;
        const uint32x4_t a = vreinterpretq_u32_u8(vld1q_u8(bytes));
        const uint32x4_t b = vreinterpretq_u32_u8(vld1q_u8(bytes + row_bytes));
        const uint32x4_t c = vreinterpretq_u32_u8(vld1q_u8(bytes + 2 * row_bytes));
        const uint32x4_t d = vreinterpretq_u32_u8(vld1q_u8(bytes + 3 * row_bytes));
        const uint64x2_t low_ab = vreinterpretq_u64_u32(vzip1q_u32(a, b));
        const uint64x2_t high_ab = vreinterpretq_u64_u32(vzip2q_u32(a, b));
        const uint64x2_t low_cd = vreinterpretq_u64_u32(vzip1q_u32(c, d));
        const uint64x2_t high_cd = vreinterpretq_u64_u32(vzip2q_u32(c, d));

        out[0].v[i] = vreinterpretq_u32_u64(vzip1q_u64(low_ab, low_cd));
        out[1].v[i] = vreinterpretq_u32_u64(vzip2q_u64(low_ab, low_cd));
        out[2].v[i] = vreinterpretq_u32_u64(vzip1q_u64(high_ab, high_cd));
        out[3].v[i] = vreinterpretq_u32_u64(vzip2q_u64(high_ab, high_cd));
    }
}

#endif

static inline void words_store_floats(float *to, simd_floats v)
{
    simd_store(to, v);
}

/* Byte i of each lane, as a number. */
static inline words words_byte(words v, size_t i)
{
    return words_and(words_right(v, (int)(8 * i)), words_all(0xff));
}

/* Bits 0 to 3 of each lane, in bits 0 of its bytes. */
static inline words words_spread(words v)
{
    v = words_and(v, words_all(15));
    v = words_or(v, words_left(v, 7));
    return words_and(words_or(v, words_left(v, 14)), words_all(0x01010101));
}

/* Store 16-bit numbers, the lower halves of two vectors, as pairs. */
static inline void words_put_pair(void *to, words first, words second)
{
    words_store(to, words_or(words_and(first, words_all(0xffff)), words_left(second, 16)));
}

#endif
