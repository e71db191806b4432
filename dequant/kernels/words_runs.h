/*
 * Lookups in the grids of dequant/iq_grids.h for sixteen rows, and signs stored as bits.
 */
#pragma once

#include "dequant/kernels/words.h"

/*
 * Return for each byte zero + q, or zero - q where its bit is set: bit 0 to 3 of a lane, counted
 * from bit 4 * nibble on.
 */
INLINE words words_signed(words q, words signs, unsigned nibble, unsigned zero)
{
    const simd_words bits = (nibble % 2 ? 0x80402010 : 0x08040201) - (simd_words){0};
    const words_bytes zeros = (uint8_t)zero - (words_bytes){0};
    /* For each byte of a lane, the place of the lane's byte that has the sign. */
    const simd_words places =
        part_repeat(simd_four(0x00000000, 0x04040404, 0x08080808, 0x0c0c0c0c)) |
        nibble / 2 * 0x01010101;
    words result;

    UNROLL
    for (size_t i = 0; i < FLOAT_PARTS; i++) {
        const simd_words spread = part_look_up(signs.v[i], places);
        const words_bytes bytes = (words_bytes)q.v[i];
#if defined(__AVX512F__)
        const __mmask64 is_minus = _mm512_test_epi8_mask((__m512i)spread, (__m512i)bits);

        result.v[i] = (simd_words)_mm512_mask_sub_epi8((__m512i)(zeros + bytes), is_minus,
                                                       (__m512i)zeros, (__m512i)bytes);
#else
        const words_bytes minus = (words_bytes)((words_bytes)(spread & bits) == (words_bytes)bits);

        result.v[i] = (simd_words)(zeros + ((bytes ^ minus) - minus));
#endif
    }
    return result;
}

/* Add to each byte of seven bits the eighth, see dequant_even_signs. */
INLINE words words_even_signs(words sevens)
{
    words parity = words_xor(sevens, words_left(sevens, 4));

    /* The upper bits of each byte get the parity; the lower ones also bits of the byte below. */
    parity = words_xor(parity, words_left(parity, 2));
    parity = words_xor(parity, words_left(parity, 1));
    return words_or(sevens, words_and(parity, words_all(0x80808080)));
}

/* Spread four times seven bits over the bytes of a lane. */
INLINE words words_sevens(words v)
{
    const words first = words_and(v, words_all(0x7f));
    const words second = words_and(words_left(v, 1), words_all(0x7f00));
    const words third = words_and(words_left(v, 2), words_all(0x7f0000));
    const words fourth = words_and(words_left(v, 3), words_all(0x7f000000));

    return words_or(words_or(first, second), words_or(third, fourth));
}

#if !defined(__AVX512F__)

/* Four lanes each. */
INLINE words words_join(const simd_bytes v[4])
{
#if defined(__AVX2__)
    SIMD_EACH(words, (simd_words)_mm256_set_m128i((__m128i)v[2 * i + 1], (__m128i)v[2 * i]));
#else
    SIMD_EACH(words, vreinterpretq_u32_u8(v[i]));
#endif
}

#endif

/* The entries of eight bytes at the indices of the lanes: their lower and upper halves. */
INLINE void words_take_8(const uint64_t *grid, words indices, words out[2])
{
#if defined(__AVX512F__)
    const __m512i at = (__m512i)indices.v[0];
    const __m512i a = _mm512_i32gather_epi64(_mm512_castsi512_si256(at), grid, 8);
    const __m512i b = _mm512_i32gather_epi64(_mm512_extracti64x4_epi64(at, 1), grid, 8);
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);

    out[0].v[0] = (simd_words)_mm512_permutex2var_epi32(a, even, b);
    out[1].v[0] =
        (simd_words)_mm512_permutex2var_epi32(a, _mm512_or_si512(even, _mm512_set1_epi32(1)), b);
#else
    typedef uint32_t four __attribute__((vector_size(16)));
    uint32_t at[DEQUANT_PANEL_ROWS];
    simd_bytes low[4], high[4];

    words_store(at, indices);
    for (size_t i = 0; i < 4; i++) {
        const four ab = (four)simd_two(grid[at[4 * i]], grid[at[4 * i + 1]]);
        const four cd = (four)simd_two(grid[at[4 * i + 2]], grid[at[4 * i + 3]]);

        low[i] = (simd_bytes)__builtin_shufflevector(ab, cd, 0, 2, 4, 6);
        high[i] = (simd_bytes)__builtin_shufflevector(ab, cd, 1, 3, 5, 7);
    }
    out[0] = words_join(low);
    out[1] = words_join(high);
#endif
}

/* The entries of four bytes. */
INLINE words words_take_4(const uint32_t *grid, words indices)
{
#if defined(__AVX512F__)
    return (words){{(simd_words)_mm512_i32gather_epi32((__m512i)indices.v[0], grid, 4)}};
#else
    uint32_t at[DEQUANT_PANEL_ROWS];
    simd_bytes v[4];

    words_store(at, indices);
    for (size_t i = 0; i < 4; i++)
        v[i] = simd_four(grid[at[4 * i]], grid[at[4 * i + 1]], grid[at[4 * i + 2]],
                         grid[at[4 * i + 3]]);
    return words_join(v);
#endif
}
