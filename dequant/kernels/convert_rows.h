/*
 * Conversion of interleaved rows to plain types with the same values. A word is the codes of four
 * consecutive elements, a byte each; a vector of four words is the codes of 16 elements.
 */
#pragma once

#include "dequant/ik_row_blocks.h"
#include "dequant/kernels/simd.h"

/*
 * Begin the function that writes row k of a stored block of a type as n_plain blocks of the plain
 * type to `out`.
 */
#define CONVERT_BLOCK(type, plain)                                                                 \
    INLINE void type##_convert(const struct dequant_##type *restrict block,                        \
                               size_t k __attribute__((unused)),                                   \
                               struct dequant_##plain *restrict out)

/* The same, and define the slot for the conversion. */
#define CONVERT(type, plain, n_plain)                                                              \
    CONVERT_BLOCK(type, plain);                                                                    \
                                                                                                   \
    void SIMD_NAME(convert_##type)(const void *restrict blocks, void *restrict out,                \
                                   size_t n_blocks, uint32_t index)                                \
    {                                                                                              \
        const struct dequant_##type *block = blocks;                                               \
        struct dequant_##plain(*to)[n_plain] = out;                                                \
                                                                                                   \
        for (size_t i = 0; i < n_blocks; i++)                                                      \
            type##_convert(&block[i], index, to[i]);                                               \
    }                                                                                              \
                                                                                                   \
    CONVERT_BLOCK(type, plain)

/* The same, and define the decoder, which converts and calls the plain type's. */
#define DECODE(type, plain, n_plain, elements)                                                     \
    CONVERT_BLOCK(type, plain);                                                                    \
                                                                                                   \
    void SIMD_NAME(type)(const void *restrict blocks, float *restrict out, size_t n_blocks,        \
                         struct dequant_row row)                                                   \
    {                                                                                              \
        enum { MOST = 4096 / ((n_plain) * sizeof(struct dequant_##plain)) };                       \
        const struct dequant_##type *block = blocks;                                               \
        struct dequant_##plain taken[MOST][n_plain];                                               \
                                                                                                   \
        for (size_t n; n_blocks > 0; n_blocks -= n, out += n * (elements)) {                       \
            n = n_blocks < MOST ? n_blocks : MOST;                                                 \
            for (size_t i = 0; i < n; i++)                                                         \
                type##_convert(block++, row.index, taken[i]);                                      \
            SIMD_NAME(plain)(taken, out, n * (n_plain), row);                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    CONVERT_BLOCK(type, plain)

#define CONVERT_AND_DECODE(type, plain, n_plain, elements)                                         \
    DECODE(type, plain, n_plain, elements);                                                        \
    CONVERT(type, plain, n_plain)

/* Vectors as in GCC and Clang: operators work on each word. */
typedef uint32_t words __attribute__((vector_size(16)));
typedef uint32_t eight_words __attribute__((vector_size(32)));

/* `bits` in each byte of a word. */
#define EACH_BYTE(bits) ((uint32_t)(bits)*0x01010101u)

INLINE void put_word(uint8_t *to, size_t index, uint32_t word)
{
    memcpy(to + sizeof word * index, &word, sizeof word);
}

INLINE void put_words(void *to, words w)
{
    memcpy(to, &w, sizeof w);
}

INLINE words four_times(const void *from)
{
    const uint32_t word = simd_u32(from);

    return (words){word, word, word, word};
}

/* Byte k of each of four or eight words, the first one in the lowest byte. */
INLINE uint32_t get_column_4(const uint8_t from[4][4], size_t k)
{
    uint64_t halves[2];
    words all;

    memcpy(&all, from, sizeof all);
    all = (all >> 8 * (uint32_t)k & 255) << (words){0, 8, 16, 24};
    memcpy(halves, &all, sizeof halves);
    halves[0] |= halves[1];
    return (uint32_t)(halves[0] | halves[0] >> 32);
}

INLINE uint64_t get_column_8(const uint8_t from[8][4], size_t k)
{
    return get_column_4(from, k) | (uint64_t)get_column_4(from + 4, k) << 32;
}

INLINE void put_column_8(const uint8_t from[8][4], size_t k, uint8_t to[8])
{
    const uint64_t column = get_column_8(from, k);

    memcpy(to, &column, sizeof column);
}

/* Exchange the bits at `mask` with those `distance` above. */
INLINE words exchange_bits(words w, uint32_t distance, uint32_t mask)
{
    const words changes = (w ^ w >> distance) & mask;

    return w ^ changes ^ changes << distance;
}

/* The lowest bits of the four bytes, whose other bits are zero, as bits 0 to 3. */
INLINE uint32_t gather_bits(uint32_t word)
{
    return word * 0x01020408u >> 24 & 15;
}

/* ---- The codes of elements 16h to 16h+15 of row k ---- */

INLINE words get_nibbles(const struct dequant_r4_nibbles *qs, size_t k, size_t h)
{
    const uint32_t a = simd_u32(qs->bytes[h][k]), b = simd_u32(qs->bytes[h + 2][k]);

    return (words){a, b, a, b} >> (words){0, 0, 4, 4} & EACH_BYTE(15);
}

INLINE words get_pairs(const struct dequant_r4_pairs *qs, size_t k, size_t h)
{
    return four_times(qs->bytes[h][k]) >> (words){0, 2, 4, 6} & EACH_BYTE(3);
}

/* The upper bits of Q6_K_R4, whose middle elements are swapped. */
INLINE words get_q6_k_pairs(const struct dequant_r4_pairs *qh, size_t k, size_t h)
{
    return four_times(qh->bytes[h][k]) >> (words){0, 4, 2, 6} & EACH_BYTE(3);
}

/* The places in a byte of struct dequant_r4_bits, by h. */
static const words q3_k_places[2] = {{0, 1, 2, 3}, {4, 5, 6, 7}}; /* IQ3_K_R4 as well */
static const words q5_0_places[2] = {{0, 2, 4, 6}, {1, 3, 5, 7}};
static const words q5_k_places[2] = {{0, 2, 1, 3}, {4, 6, 5, 7}};
static const words iq5_k_places[2] = {{0, 4, 1, 5}, {2, 6, 3, 7}}; /* IQ5_KS_R4 as well */

INLINE words get_bits(const struct dequant_r4_bits *qh, size_t k, words places)
{
    return four_times(qh->bytes[k]) >> places & EACH_BYTE(1);
}

/* ---- The plain types' order of codes ---- */

/* Q2_K, Q3_K, IQ2_K and IQ3_K: 2 bits. */
INLINE void put_pairs(const struct dequant_r4_pairs qs[DEQUANT_N_32], size_t k,
                      uint8_t to[DEQUANT_SUPERBLOCK / 4])
{
    for (size_t i = 0; i < 4; i++) {
        const struct dequant_r4_pairs *from = &qs[i / 2 * 4];

        put_words(to + 16 * i, get_pairs(&from[0], k, i % 2) | get_pairs(&from[1], k, i % 2) << 2 |
                                   get_pairs(&from[2], k, i % 2) << 4 |
                                   get_pairs(&from[3], k, i % 2) << 6);
    }
}

/* Q4_K, Q5_K, IQ5_K and IQ5_KS: the nibbles of two blocks of 32 in a byte. */
INLINE void put_nibbles_32(const struct dequant_r4_nibbles qs[DEQUANT_N_32], size_t k,
                           uint8_t to[DEQUANT_SUPERBLOCK / 2])
{
    for (size_t i = 0; i < DEQUANT_N_32; i++) {
        const struct dequant_r4_nibbles *from = &qs[i / 2 * 2];

        put_words(to + 16 * i, get_nibbles(&from[0], k, i % 2) | get_nibbles(&from[1], k, i % 2)
                                                                     << 4);
    }
}

/* IQ4_NL, IQ4_K and others: the nibbles of elements 16 apart in a byte. */
INLINE void put_nibbles_16(const struct dequant_r4_nibbles *qs, size_t k, uint8_t to[16])
{
    put_words(to, get_nibbles(qs, k, 0) | get_nibbles(qs, k, 1) << 4);
}

/* Q3_K, Q5_K, IQ3_K, IQ5_K and IQ5_KS: a bit of each block of 32 in a byte. */
INLINE void put_bits(const struct dequant_r4_bits qh[DEQUANT_N_32], size_t k, const words places[2],
                     uint8_t to[DEQUANT_SUPERBLOCK / 8])
{
    eight_words shifts, all = {0};

    memcpy(&shifts, places, sizeof shifts);
    for (int s = 0; s < DEQUANT_N_32; s++)
        all |= (simd_u32(qh[s].bytes[k]) >> shifts & EACH_BYTE(1)) << s;
    memcpy(to, &all, sizeof all);
}
