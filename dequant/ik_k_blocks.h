/*
 * The blocks of ik_llama.cpp's types without interleaved rows, except the trellis types
 * (dequant/ik_kt_blocks.h). dequant/blocks.h explains the pictures, dequant/iq_grids.h has the
 * tables.
 *
 * Source of the layouts: ggml-common.h, ggml-quants.c and iqk_quantize.cpp of ik_llama.cpp.
 */
#pragma once

#include "dequant/blocks.h"

enum { DEQUANT_BN_BLOCK = 64, DEQUANT_I2_S_BLOCK = 128 };

/*
 * IQ4_KS, value = d * ((scale & 254) - 127) * (table[q] + 4 * (scale & 1)), d = the f32 row header,
 * table = dequant_iq4_values; sub-block s holds the elements 32s to 32s+31
 *
 *   s        | scale s : 8 |                                                  s = 0..7
 *   8+16s+i  | 32s+16+i : 4 | 32s+i : 4 |                                     i = 0..15
 */
struct dequant_iq4_ks {
    uint8_t scales[DEQUANT_SUPERBLOCK / 32];
    uint8_t qs[DEQUANT_SUPERBLOCK / 32][16];
} DEQUANT_PACKED_BYTES(iq4_ks, 136);

/*
 * IQ2_K, value = d * (scale - 8) * table[flag][q], table = dequant_iq2_k_values; sub-block s holds
 * the elements 16s to 16s+15; until 2024-10-13, value = d * (2 * scale - 15) * table[flag][q]
 *
 *   0..1      d
 *   2..3      | flag 15 : 1 | … | flag 0 : 1 |
 *   4+i       | scale 2i+1 : 4 | scale 2i : 4 |                  i = 0..7
 *   12+32h+j  | p+96 : 2 | p+64 : 2 | p+32 : 2 | p : 2 |         p = 128h+j, h = 0, 1, j = 0..31
 */
struct dequant_iq2_k {
    uint16_t d;
    uint16_t flags;
    uint8_t scales[DEQUANT_SUPERBLOCK / 32];
    uint8_t qs[DEQUANT_SUPERBLOCK / 4];
} DEQUANT_PACKED_BYTES(iq2_k, 76);

/*
 * IQ3_K, value = d * ±(2 * scale + 1) * table[flag][q], table = dequant_iq3_k_values, minus where
 * the sign is set; sub-blocks as in IQ2_K
 *
 *   0..1      d
 *   2..3      | flag 15 : 1 | … | flag 0 : 1 |
 *   4..5      | sign 15 : 1 | … | sign 0 : 1 |
 *   6+i       | scale 2i+1 : 4 | scale 2i : 4 |                  i = 0..7
 *   14+32h+j  the lower 2 bits of q, as in IQ2_K
 *   78+j      | high of j+224 : 1 | … | j+32 : 1 | j : 1 |       j = 0..31
 */
struct dequant_iq3_k {
    uint16_t d;
    uint16_t flags;
    uint16_t signs;
    uint8_t scales[DEQUANT_SUPERBLOCK / 32];
    uint8_t qs[DEQUANT_SUPERBLOCK / 4];
    uint8_t qh[DEQUANT_SUPERBLOCK / 8];
} DEQUANT_PACKED_BYTES(iq3_k, 110);

/*
 * The 16 scales of IQ4_K and IQ5_K, 6 bits each
 *
 *   i    | high of 4i+3 : 2 | 4i+2 : 2 | 4i+1 : 2 | 4i : 2 |     i = 0..3
 *   4+i  | low of 2i+1 : 4 | low of 2i : 4 |                     i = 0..7
 */
struct dequant_ik_scales {
    uint8_t high[4];
    uint8_t low[8];
} DEQUANT_PACKED;

/*
 * IQ4_K, value = d * (scale - 32) * (table[q] + 4 * flag), table = dequant_iq4_values; sub-blocks
 * as in IQ2_K
 *
 *   0..1     d
 *   2..3     | flag 15 : 1 | … | flag 0 : 1 |
 *   4..15    scales, above
 *   16+16b+j  | 32b+16+j : 4 | 32b+j : 4 |                       b = 0..7, j = 0..15
 */
struct dequant_iq4_k {
    uint16_t d;
    uint16_t flags;
    struct dequant_ik_scales scales;
    uint8_t qs[DEQUANT_SUPERBLOCK / 32][16];
} DEQUANT_PACKED_BYTES(iq4_k, 144);

/*
 * IQ5_K, value = d * (scale - 32) * (table[q] + 2 * flag), table = dequant_iq5_k_values; sub-blocks
 * as in IQ2_K
 *
 *   0..1      d
 *   2..3      | flag 15 : 1 | … | flag 0 : 1 |
 *   4..15     scales, above
 *   16+32i+j  | low of 64i+32+j : 4 | low of 64i+j : 4 |         i = 0..3, j = 0..31
 *   144+j     | high of j+224 : 1 | … | j+32 : 1 | j : 1 |       j = 0..31
 */
struct dequant_iq5_k {
    uint16_t d;
    uint16_t flags;
    struct dequant_ik_scales scales;
    uint8_t qs[DEQUANT_SUPERBLOCK / 2];
    uint8_t qh[DEQUANT_SUPERBLOCK / 8];
} DEQUANT_PACKED_BYTES(iq5_k, 176);

/*
 * IQ6_K, value = d * scale * (table[q] + flag), table = dequant_iq6_k_values; sub-blocks as in
 * IQ2_K
 *
 *   0..1       d
 *   2..3       | flag 15 : 1 | … | flag 0 : 1 |
 *   4+s        | scale s : 8, signed |                           s = 0..15
 *   20+32i+j   | low of 64i+32+j : 4 | low of 64i+j : 4 |        i = 0..3, j = 0..31
 *   148+32h+j  | high of p+96 : 2 | p+64 : 2 | p+32 : 2 | p : 2 |   p = 128h+j, h = 0, 1, j = 0..31
 */
struct dequant_iq6_k {
    uint16_t d;
    uint16_t flags;
    int8_t scales[DEQUANT_SUPERBLOCK / 16];
    uint8_t qs[DEQUANT_SUPERBLOCK / 2];
    uint8_t qh[DEQUANT_SUPERBLOCK / 4];
} DEQUANT_PACKED_BYTES(iq6_k, 212);

/*
 * IQ2_KS, value = d * (scale - 16) * table[flag][q], d = the f16 row header, table =
 * dequant_iq2_k_values; sub-block b holds the elements 32b to 32b+31
 *
 *   0..1     | high of scale 7 : 1 | … | scale 0 : 1 | flag 7 : 1 | … | flag 0 : 1 |
 *   2+i      | low of scale 2i+1 : 4 | low of scale 2i : 4 |     i = 0..3
 *   6+32h+j  q, as in IQ2_K
 */
struct dequant_iq2_ks {
    uint16_t extra;
    uint8_t scales[DEQUANT_SUPERBLOCK / 64];
    uint8_t qs[DEQUANT_SUPERBLOCK / 4];
} DEQUANT_PACKED_BYTES(iq2_ks, 70);

/*
 * IQ3_KS, value = d * (scale - 16) * table[flag][q], d = the f16 row header, table =
 * dequant_iq3_k_values; sub-blocks as in IQ2_KS
 *
 *   0..1     | flag 7 : 1 | … | flag 0 : 1 | high of scale 7 : 1 | … | scale 0 : 1 |
 *   2+i      | low of scale i+4 : 4 | low of scale i : 4 |       i = 0..3
 *   6..101   q, as in IQ3_K
 */
struct dequant_iq3_ks {
    uint16_t extra;
    uint8_t scales[DEQUANT_SUPERBLOCK / 64];
    uint8_t qs[DEQUANT_SUPERBLOCK / 4];
    uint8_t qh[DEQUANT_SUPERBLOCK / 8];
} DEQUANT_PACKED_BYTES(iq3_ks, 102);

/*
 * IQ4_KSS, the values of IQ4_KS. Four codes of 4 bits, whose 16 bits have even parity, and a bit of
 * a scale are a word of 16 bits: bit i of scale b is bit 0 of word i of sub-block b. With w the
 * word without that bit, w ^ w >> 1 are the codes, the first in the lowest bits. The eight results,
 * as 16 bytes, are the nibbles of IQ4_KS.
 *
 *   16b+2i..16b+2i+1  | w : 15 | bit i of scale b : 1 |          b, i = 0..7
 */
struct dequant_iq4_kss {
    uint16_t words[DEQUANT_SUPERBLOCK / 32][8];
} DEQUANT_PACKED_BYTES(iq4_kss, 128);

/*
 * IQ5_KS, value = d * ((scale & 254) - 127) * (table[q] + 2 * (scale & 1)), d = the f32 row header,
 * table = dequant_iq5_k_values; sub-blocks as in IQ2_KS
 *
 *   b        | scale b : 8 |                                     b = 0..7
 *   8..167   q, as in IQ5_K
 */
struct dequant_iq5_ks {
    uint8_t scales[DEQUANT_SUPERBLOCK / 32];
    uint8_t qs[DEQUANT_SUPERBLOCK / 2];
    uint8_t qh[DEQUANT_SUPERBLOCK / 8];
} DEQUANT_PACKED_BYTES(iq5_ks, 168);

/*
 * IQ2_KL, value = d * (scale - 32) * table[e % 2][q], d = the f16 row header, table =
 * dequant_iq2_kl_values; q belongs to a pair of elements e; sub-block b holds the pairs 16b to
 * 16b+15, the elements 32b to 32b+31
 *
 *   0..1     | high of scale 7 : 2 | … | high of scale 0 : 2 |
 *   2+i      | low of scale i+4 : 4 | low of scale i : 4 |       i = 0..3
 *   6+16i+j  | low of pair 32i+16+j : 4 | low of pair 32i+j : 4 |   i = 0..3, j = 0..15
 *   70+j     | high of pair 112+j : 1 | … | 16+j : 1 | j : 1 |   j = 0..15
 */
struct dequant_iq2_kl {
    uint16_t scales_high;
    uint8_t scales_low[DEQUANT_SUPERBLOCK / 64];
    uint8_t qs[DEQUANT_SUPERBLOCK / 4];
    uint8_t qh[DEQUANT_SUPERBLOCK / 16];
} DEQUANT_PACKED_BYTES(iq2_kl, 86);

/*
 * IQ1_BN, value = d * (q - 1), d = the f16 row header; byte = ceil(256 * n / 243), where n has the
 * q of five elements as digits in base 3, the first as the lowest, or of four and a zero
 *
 *   3i+k     | 16i+5k to 16i+5k+4 : 8 |                          i = 0..3, k = 0..2
 *   12       | 15, 31, 47, 63 : 8 |
 */
struct dequant_iq1_bn {
    uint8_t fives[DEQUANT_BN_BLOCK / 16][3];
    uint8_t rest;
} DEQUANT_PACKED_BYTES(iq1_bn, 13);

/*
 * IQ2_BN, value = d * (q - 1), d = the f32 row header
 *
 *   j        | j+48 : 2 | j+32 : 2 | j+16 : 2 | j : 2 |          j = 0..15
 */
struct dequant_iq2_bn {
    uint8_t qs[DEQUANT_BN_BLOCK / 4];
} DEQUANT_PACKED_BYTES(iq2_bn, 16);

/*
 * I2_S, of BitNet, value = d * (q - 1); d is the f32 at the start of the tail; the rest of the tail
 * is unused
 *
 *   j        | j : 2 | j+32 : 2 | j+64 : 2 | j+96 : 2 |          j = 0..31
 */
struct dequant_i2_s {
    uint8_t qs[DEQUANT_I2_S_BLOCK / 4];
} DEQUANT_PACKED_BYTES(i2_s, 32);

/*
 * Q6_0, value = d * (q - 32)
 *
 *   0..1     d
 *   2+j      | high of j+24 : 2 | j+8 : 2 | j+16 : 2 | j : 2 |   j = 0..7
 *   10+j     | low of j+16 : 4 | low of j : 4 |                  j = 0..15
 */
struct dequant_q6_0 {
    uint16_t d;
    uint8_t qh[DEQUANT_BLOCK / 4];
    uint8_t qs[DEQUANT_BLOCK / 2];
} DEQUANT_PACKED_BYTES(q6_0, 26);

/*
 * Q8_KV, value = d * q; the row header is d as f32, then the sum of the row's q as i32
 *
 *   j        | j : 8, signed |                                   j = 0..31
 */
struct dequant_q8_kv {
    int8_t qs[DEQUANT_BLOCK];
} DEQUANT_PACKED_BYTES(q8_kv, 32);

/* The integer of an IQ4_KS scale, and what its flag adds to the values. */
static inline int dequant_ks_scale(uint8_t scale)
{
    return (scale & 254) - 127;
}

static inline int dequant_ks_shift(uint8_t scale)
{
    return 4 * (scale & 1);
}
