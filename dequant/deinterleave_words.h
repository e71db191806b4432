/*
 * What the functions that take rows apart have in common. They work on words: the codes of four
 * elements in a row, a byte each, the first in the lowest byte. Word t of a block of 32 elements
 * has the elements 4t to 4t+3.
 */
#ifndef GGUFS_DEQUANT_DEINTERLEAVE_WORDS_H
#define GGUFS_DEQUANT_DEINTERLEAVE_WORDS_H

#include "dequant/ik_row_blocks.h"

/* `bits` in each byte of a word. */
#define EACH_BYTE(bits) ((uint32_t)(bits)*0x01010101u)

static inline uint32_t get_word(const void *from)
{
    uint32_t word;

    memcpy(&word, from, sizeof word);
    return word;
}

static inline void put_word(uint8_t *to, size_t index, uint32_t word)
{
    memcpy(to + sizeof word * index, &word, sizeof word);
}

/* The lowest bits of the four bytes, whose other bits are zero, as bits 0 to 3. */
static inline uint32_t gather_bits(uint32_t word)
{
    return word * 0x01020408u >> 24 & 15;
}

/* ---- The codes of row k ---- */

static inline uint32_t nibble_word(const struct dequant_r4_nibbles *qs, size_t k, size_t t)
{
    const size_t run = t / 4 + t % 2 * 2, shift = t % 4 / 2 * 4;

    return get_word(qs->bytes[run][k]) >> shift & EACH_BYTE(15);
}

static inline uint32_t pair_word(const struct dequant_r4_pairs *qs, size_t k, size_t t)
{
    return get_word(qs->bytes[t / 4][k]) >> (t % 4 * 2) & EACH_BYTE(3);
}

/* The upper bits of Q6_K_R4, whose middle elements are swapped. */
static inline uint32_t q6_k_pair_word(const struct dequant_r4_pairs *qh, size_t k, size_t t)
{
    const size_t place = t % 2 * 2 + t % 4 / 2;

    return get_word(qh->bytes[t / 4][k]) >> (place * 2) & EACH_BYTE(3);
}

static inline uint32_t bit_word(const struct dequant_r4_bits *qh, size_t k, unsigned place)
{
    return get_word(qh->bytes[k]) >> place & EACH_BYTE(1);
}

/* The bits of words 0 to 7 in a byte of struct dequant_r4_bits. */
static const uint8_t q3_k_places[8] = {0, 1, 2, 3, 4, 5, 6, 7}; /* IQ3_K_R4 as well */
static const uint8_t q5_0_places[8] = {0, 2, 4, 6, 1, 3, 5, 7};
static const uint8_t q5_k_places[8] = {0, 2, 1, 3, 4, 6, 5, 7};
static const uint8_t iq5_k_places[8] = {0, 4, 1, 5, 2, 6, 3, 7}; /* IQ5_KS_R4 as well */

/* ---- The plain types' order of codes; each writes what serves a whole superblock ---- */

/* Q2_K, Q3_K, IQ2_K and IQ3_K: 2 bits. */
static inline void put_pairs(const struct dequant_r4_pairs qs[DEQUANT_N_32], size_t k,
                             uint8_t to[DEQUANT_SUPERBLOCK / 4])
{
    for (size_t h = 0; h < 2; h++) {
        for (size_t t = 0; t < 8; t++)
            put_word(to, 8 * h + t,
                     pair_word(&qs[4 * h], k, t) | pair_word(&qs[4 * h + 1], k, t) << 2 |
                         pair_word(&qs[4 * h + 2], k, t) << 4 |
                         pair_word(&qs[4 * h + 3], k, t) << 6);
    }
}

/* Q4_K, Q5_K, IQ5_K and IQ5_KS: the nibbles of two blocks of 32 in a byte. */
static inline void put_nibbles_32(const struct dequant_r4_nibbles qs[DEQUANT_N_32], size_t k,
                                  uint8_t to[DEQUANT_SUPERBLOCK / 2])
{
    for (size_t p = 0; p < DEQUANT_N_32 / 2; p++) {
        for (size_t t = 0; t < 8; t++)
            put_word(to, 8 * p + t,
                     nibble_word(&qs[2 * p], k, t) | nibble_word(&qs[2 * p + 1], k, t) << 4);
    }
}

/* IQ4_NL, IQ4_K and IQ4_KS: the nibbles of elements 16 apart in a byte. */
static inline void put_nibbles_16(const struct dequant_r4_nibbles *qs, size_t k, uint8_t to[16])
{
    for (size_t t = 0; t < 4; t++)
        put_word(to, t, nibble_word(qs, k, t) | nibble_word(qs, k, t + 4) << 4);
}

/* Q3_K, Q5_K, IQ3_K, IQ5_K and IQ5_KS: a bit of each block of 32 in a byte. */
static inline void put_bits(const struct dequant_r4_bits qh[DEQUANT_N_32], size_t k,
                            const uint8_t places[8], uint8_t to[DEQUANT_SUPERBLOCK / 8])
{
    for (size_t t = 0; t < 8; t++) {
        uint32_t word = 0;

        for (size_t s = 0; s < DEQUANT_N_32; s++)
            word |= bit_word(&qh[s], k, places[t]) << s;
        put_word(to, t, word);
    }
}

/* ---- Scales ---- */

/* Scale n, 0 to 63. */
static inline unsigned scale_of(const struct dequant_interleaved_scales *scales, size_t n)
{
    return (unsigned)(scales->low[n % 32] >> (n / 32 * 4) & 15) |
           (unsigned)(scales->high[n % 16] >> (n / 16 * 2) & 3) << 4;
}

#endif
