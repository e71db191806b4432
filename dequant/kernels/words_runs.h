/*
 * Lookups in the grids of dequant/iq_grids.h for sixteen rows, and signs stored as bits.
 */
#ifndef GGUFS_DEQUANT_KERNELS_WORDS_RUNS_H
#define GGUFS_DEQUANT_KERNELS_WORDS_RUNS_H

#include "dequant/kernels/words_math.h"

/* Each lane's byte `index`, four times. */
static inline words words_spread_byte(words v, unsigned index)
{
#if defined(__AVX512F__)
    const __m512i places = _mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0x00000000);

    return _mm512_shuffle_epi8(v, _mm512_or_si512(places, words_all(index * 0x01010101)));
#elif defined(__AVX2__)
    const __m256i places = _mm256_setr_epi32(0x00000000, 0x04040404, 0x08080808, 0x0c0c0c0c,
                                             0x00000000, 0x04040404, 0x08080808, 0x0c0c0c0c);
    const __m256i all = _mm256_or_si256(places, _mm256_set1_epi32((int)(index * 0x01010101)));

    return (words){_mm256_shuffle_epi8(v.low, all), _mm256_shuffle_epi8(v.high, all)};
#else
    const uint32x4_t places = {0x00000000, 0x04040404, 0x08080808, 0x0c0c0c0c};
    const uint32x4_t all = vorrq_u32(places, vdupq_n_u32(index * 0x01010101));

    WORDS_EACH(
        vreinterpretq_u32_u8(vqtbl1q_u8(vreinterpretq_u8_u32(v.v[i]), vreinterpretq_u8_u32(all))));
#endif
}

/*
 * Return for each byte zero + q, or zero - q where its bit is set: bit 0 to 3 of a lane, counted
 * from bit 4 * nibble on.
 */
static inline words words_signed(words q, words signs, unsigned nibble, unsigned zero)
{
    const words spread = words_spread_byte(signs, nibble / 2);
    const words bits = words_all(nibble % 2 ? 0x80402010 : 0x08040201);
    const words zeros = words_all(zero * 0x01010101);
#if defined(__AVX512F__)
    const __mmask64 is_minus = _mm512_test_epi8_mask(spread, bits);

    return _mm512_mask_sub_epi8(_mm512_add_epi8(zeros, q), is_minus, zeros, q);
#elif defined(__AVX2__)
    const words set = words_and(spread, bits);
    const words masks = {_mm256_cmpeq_epi8(set.low, bits.low),
                         _mm256_cmpeq_epi8(set.high, bits.high)};
    const words flipped = words_xor(q, masks);

    return (words){
        _mm256_add_epi8(zeros.low, _mm256_sub_epi8(flipped.low, masks.low)),
        _mm256_add_epi8(zeros.high, _mm256_sub_epi8(flipped.high, masks.high)),
    };
#else
    words result;

    for (size_t i = 0; i < 4; i++) {
        const uint8x16_t bytes = vreinterpretq_u8_u32(q.v[i]);
        const uint8x16_t z = vreinterpretq_u8_u32(zeros.v[i]);
        const uint8x16_t is_minus =
            vtstq_u8(vreinterpretq_u8_u32(spread.v[i]), vreinterpretq_u8_u32(bits.v[i]));

        result.v[i] =
            vreinterpretq_u32_u8(vbslq_u8(is_minus, vsubq_u8(z, bytes), vaddq_u8(z, bytes)));
    }
    return result;
#endif
}

/* Add to each byte of seven bits the eighth, see dequant_even_signs. */
static inline words words_even_signs(words sevens)
{
    words parity = words_xor(sevens, words_left(sevens, 4));

    /* The upper bits of each byte get the parity; the lower ones also bits of the byte below. */
    parity = words_xor(parity, words_left(parity, 2));
    parity = words_xor(parity, words_left(parity, 1));
    return words_or(sevens, words_and(parity, words_all(0x80808080)));
}

/* Spread four times seven bits over the bytes of a lane. */
static inline words words_sevens(words v)
{
    const words first = words_and(v, words_all(0x7f));
    const words second = words_and(words_left(v, 1), words_all(0x7f00));
    const words third = words_and(words_left(v, 2), words_all(0x7f0000));
    const words fourth = words_and(words_left(v, 3), words_all(0x7f000000));

    return words_or(words_or(first, second), words_or(third, fourth));
}

#if defined(__AVX512F__)

/* The entries of eight bytes at the indices of the lanes: their lower and upper halves. */
static inline void words_take_8(const uint64_t *grid, words indices, words out[2])
{
    const __m512i a = _mm512_i32gather_epi64(_mm512_castsi512_si256(indices), grid, 8);
    const __m512i b = _mm512_i32gather_epi64(_mm512_extracti64x4_epi64(indices, 1), grid, 8);
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);

    out[0] = _mm512_permutex2var_epi32(a, even, b);
    out[1] = _mm512_permutex2var_epi32(a, _mm512_or_si512(even, words_all(1)), b);
}

/* The entries of four bytes. */
static inline words words_take_4(const uint32_t *grid, words indices)
{
    return _mm512_i32gather_epi32(indices, grid, 4);
}

#else

#if defined(__AVX2__)

/* Four lanes from four entries. */
static inline void words_take_four_8(const uint64_t *grid, const uint32_t at[4], __m128 out[2])
{
    const __m128 ab = _mm_castsi128_ps(simd_two(grid[at[0]], grid[at[1]]));
    const __m128 cd = _mm_castsi128_ps(simd_two(grid[at[2]], grid[at[3]]));

    out[0] = _mm_shuffle_ps(ab, cd, 0x88);
    out[1] = _mm_shuffle_ps(ab, cd, 0xdd);
}

static inline words words_join(const __m128i v[4])
{
    return (words){_mm256_set_m128i(v[1], v[0]), _mm256_set_m128i(v[3], v[2])};
}

#else

static inline words words_join(const simd_bytes v[4])
{
    WORDS_EACH(vreinterpretq_u32_u8(v[i]));
}

#endif

static inline void words_take_8(const uint64_t *grid, words indices, words out[2])
{
    uint32_t at[DEQUANT_PANEL_ROWS];
    simd_bytes low[4], high[4];

    words_store(at, indices);
    for (size_t i = 0; i < 4; i++) {
#if defined(__AVX2__)
        __m128 halves[2];

        words_take_four_8(grid, at + 4 * i, halves);
        low[i] = _mm_castps_si128(halves[0]);
        high[i] = _mm_castps_si128(halves[1]);
#else
        const uint32x4_t ab = vreinterpretq_u32_u8(simd_two(grid[at[4 * i]], grid[at[4 * i + 1]]));
        const uint32x4_t cd =
            vreinterpretq_u32_u8(simd_two(grid[at[4 * i + 2]], grid[at[4 * i + 3]]));

        low[i] = vreinterpretq_u8_u32(vuzp1q_u32(ab, cd));
        high[i] = vreinterpretq_u8_u32(vuzp2q_u32(ab, cd));
#endif
    }
    out[0] = words_join(low);
    out[1] = words_join(high);
}

static inline words words_take_4(const uint32_t *grid, words indices)
{
    uint32_t at[DEQUANT_PANEL_ROWS];
    simd_bytes v[4];

    words_store(at, indices);
    for (size_t i = 0; i < 4; i++)
        v[i] = simd_four(grid[at[4 * i]], grid[at[4 * i + 1]], grid[at[4 * i + 2]],
                         grid[at[4 * i + 3]]);
    return words_join(v);
}

#endif

#endif
