/*
 * The blocks of the types with interleaved rows, of ik_llama.cpp and formerly of ggml (Q4_0).
 * dequant/blocks.h explains the pictures.
 *
 * A struct is a stored block: a block of each row of a group, k being the row within the group.
 * Values follow the formula of the type named before _R4, _R8 or _R16, unless a comment gives
 * another formula. Row headers lie before the blocks, see struct dequant_type.
 *
 * Source of the layouts: ggml-common.h and iqk_quantize.cpp of ik_llama.cpp; ggml-aarch64.c of ggml
 * for the types that ggml had.
 */
#pragma once

#include "dequant/blocks.h"

#define DEQUANT_R4_ROWS  4
#define DEQUANT_R8_ROWS  8
#define DEQUANT_R16_ROWS 16

/* ---- Parts of several types ---- */

/*
 * A type with the nibbles of a block of Q4_0, IQ4_NL or MXFP4 of each row, in runs of four or eight
 * bytes after the scales
 *
 *   4(rows * r + k)+i  | 4r+i+16 : 4 | 4r+i : 4 |      r, i = 0..3
 *   8(rows * r + k)+i  | 8r+i+16 : 4 | 8r+i : 4 |      r = 0..1, i = 0..7
 */
#define DEQUANT_RUNS(layout, number, scale, rows, run_bytes)                                       \
    struct dequant_##layout {                                                                      \
        number scale[rows];                                                                        \
        uint8_t qs[16 / (run_bytes)][rows][run_bytes];                                             \
    } DEQUANT_PACKED_BYTES(layout, (rows) * (sizeof(number) + 16))

/*
 * The 32 nibbles of each of four rows
 *
 *   16l+4k+i  | p+8+i : 4 bits | p+i : 4 |    p = 16(l%2) + 4(l/2)     l, k, i = 0..3; row k
 */
struct dequant_r4_nibbles {
    uint8_t bytes[4][DEQUANT_R4_ROWS][4];
} DEQUANT_PACKED;

/*
 * 2 bits of each of 32 elements of each of four rows
 *
 *   16h+4k+i  | 16h+12+i : 2 | 16h+8+i : 2 | 16h+4+i : 2 | 16h+i : 2 |     h = 0..1, i = 0..3
 */
struct dequant_r4_pairs {
    uint8_t bytes[2][DEQUANT_R4_ROWS][4];
} DEQUANT_PACKED;

/*
 * One bit of each of 32 elements of each of four rows. The order of the bits in a byte depends on
 * the type; the picture shows Q3_K_R4 and IQ3_K_R4.
 *
 *   4k+i  | 28+i | 24+i | 20+i | 16+i | 12+i | 8+i | 4+i | i |              i = 0..3
 */
struct dequant_r4_bits {
    uint8_t bytes[DEQUANT_R4_ROWS][4];
} DEQUANT_PACKED;

/*
 * The 16 scales, 6 bits each, of each of four rows; n = 4s+k for sub-block s of row k
 *
 *   n     | scale n+48 : 2, high | n+32 : 2 | n+16 : 2 | n : 2 |            n = 0..15
 *   16+n  | scale n+32 : 4, low | scale n : 4, low |                        n = 0..31
 */
struct dequant_r4_scales {
    uint8_t high[4][DEQUANT_R4_ROWS];
    uint8_t low[8][DEQUANT_R4_ROWS];
} DEQUANT_PACKED;

/*
 * The scales and minima of Q4_K_R4 and Q5_K_R4; n = 4s+k for sub-block s of row k
 *
 *   j     | min 16+j : 2, high | scale 16+j : 2 | min j : 2 | scale j : 2 | j = 0..15
 *   16+n  | min n : 4, low | scale n : 4, low |                             n = 0..31
 */
struct dequant_r4_k_scales {
    uint8_t high[4][DEQUANT_R4_ROWS];
    uint8_t low[8][DEQUANT_R4_ROWS];
} DEQUANT_PACKED;

/*
 * A bit of each of the 16 sub-blocks of four rows
 *
 *   k    | 14 | 12 | 10 | 8 | 6 | 4 | 2 | sub-block 0 |                     row k
 *   4+k  | 15 | 13 | 11 | 9 | 7 | 5 | 3 | sub-block 1 |
 */
struct dequant_r4_flags {
    uint8_t even[DEQUANT_R4_ROWS];
    uint8_t odd[DEQUANT_R4_ROWS];
} DEQUANT_PACKED;

/* ---- One scale per block ---- */

/* Q4_0_N_M, value = q * d, q signed: each byte is Q4_0's with bits 3 and 7 inverted */
DEQUANT_RUNS(q4_0_4_4, uint16_t, d, 4, 4);
DEQUANT_RUNS(q4_0_4_8, uint16_t, d, 4, 8);
DEQUANT_RUNS(q4_0_8_8, uint16_t, d, 8, 8);

DEQUANT_RUNS(q4_0_r8, uint16_t, d, DEQUANT_R8_ROWS, 4);
DEQUANT_RUNS(mxfp4_r8, uint8_t, e, DEQUANT_R8_ROWS, 4);

/*
 * IQ4_NL_R4, the values of IQ4_NL
 *
 *   2k..2k+1  d of row k
 *   8..71     nibbles, above
 */
struct dequant_iq4_nl_r4 {
    uint16_t d[DEQUANT_R4_ROWS];
    struct dequant_r4_nibbles qs;
} DEQUANT_PACKED_BYTES(iq4_nl_r4, DEQUANT_R4_ROWS * 18UL);

/*
 * Q5_0_R4, value = q * d - 16 * d, so that every zero is positive
 *
 *   2k..2k+1  d of row k
 *   8+4k+i    | 28+i | 12+i | 24+i | 8+i | 20+i | 4+i | 16+i | i |  high bit    i = 0..3
 *   24..87    low nibbles
 */
struct dequant_q5_0_r4 {
    uint16_t d[DEQUANT_R4_ROWS];
    struct dequant_r4_bits qh;
    struct dequant_r4_nibbles qs;
} DEQUANT_PACKED_BYTES(q5_0_r4, DEQUANT_R4_ROWS * 22UL);

/*
 * Q6_0_R4, value = q * d - 32 * d, so that every zero is positive
 *
 *   2k..2k+1    d of row k
 *   8+16h+4k+i  | 16h+12+i : 2 | 16h+8+i : 2 | 16h+4+i : 2 | 16h+i : 2 |  high  h = 0..1, i = 0..3
 *   40..103     low nibbles
 */
struct dequant_q6_0_r4 {
    uint16_t d[DEQUANT_R4_ROWS];
    struct dequant_r4_pairs qh;
    struct dequant_r4_nibbles qs;
} DEQUANT_PACKED_BYTES(q6_0_r4, DEQUANT_R4_ROWS * 26UL);

/*
 * Q8_0_R8
 *
 *   2k..2k+1    d of row k
 *   16+32r+4k+i | 4r+i : 8 bits, signed |                                   r = 0..7, i = 0..3
 */
struct dequant_q8_0_r8 {
    uint16_t d[DEQUANT_R8_ROWS];
    int8_t qs[DEQUANT_BLOCK / 4][DEQUANT_R8_ROWS][4];
} DEQUANT_PACKED_BYTES(q8_0_r8, DEQUANT_R8_ROWS * 34UL);

/* Q8_KV_R8, value = d * q, d = the f32 row header; the bytes as in Q8_0_R8 */
struct dequant_q8_kv_r8 {
    int8_t qs[DEQUANT_BLOCK / 4][DEQUANT_R8_ROWS][4];
} DEQUANT_PACKED_BYTES(q8_kv_r8, DEQUANT_R8_ROWS * 32UL);

/*
 * BF16_R16. The block has two elements, because the two of a row lie side by side.
 *
 *   4k+2i, +1  | i : 16 |                                                   i = 0..1
 */
struct dequant_bf16_r16 {
    uint16_t bits[DEQUANT_R16_ROWS][2];
} DEQUANT_PACKED_BYTES(bf16_r16, DEQUANT_R16_ROWS * 4UL);

/* ---- K types ---- */

/*
 * Q2_K_R4
 *
 *   16+4s+k   | min s : 4 | scale s : 4 |  of row k                         s = 0..15
 *   80+32b..  2 bits each of the elements 32b to 32b+31                     b = 0..7
 */
struct dequant_q2_k_r4 {
    uint16_t d[DEQUANT_R4_ROWS];
    uint16_t m[DEQUANT_R4_ROWS];
    uint8_t scales[DEQUANT_N_16][DEQUANT_R4_ROWS];
    struct dequant_r4_pairs qs[DEQUANT_N_32];
} DEQUANT_PACKED_BYTES(q2_k_r4, DEQUANT_R4_ROWS * 84UL);

/* Q3_K_R4 */
struct dequant_q3_k_r4 {
    uint16_t d[DEQUANT_R4_ROWS];
    struct dequant_r4_scales scales;
    struct dequant_r4_bits qh[DEQUANT_N_32];
    struct dequant_r4_pairs qs[DEQUANT_N_32];
} DEQUANT_PACKED_BYTES(q3_k_r4, DEQUANT_R4_ROWS * 110UL);

/* Q4_K_R4 */
struct dequant_q4_k_r4 {
    uint16_t d[DEQUANT_R4_ROWS];
    uint16_t m[DEQUANT_R4_ROWS];
    struct dequant_r4_k_scales scales;
    struct dequant_r4_nibbles qs[DEQUANT_N_32];
} DEQUANT_PACKED_BYTES(q4_k_r4, DEQUANT_R4_ROWS * 144UL);

/*
 * Q5_K_R4
 *
 *   64+16b+4k+i  | 28+i | 20+i | 24+i | 16+i | 12+i | 4+i | 8+i | i |  high bit of the elements
 *                32b + these                                                b = 0..7, i = 0..3
 */
struct dequant_q5_k_r4 {
    uint16_t d[DEQUANT_R4_ROWS];
    uint16_t m[DEQUANT_R4_ROWS];
    struct dequant_r4_k_scales scales;
    struct dequant_r4_bits qh[DEQUANT_N_32];
    struct dequant_r4_nibbles qs[DEQUANT_N_32];
} DEQUANT_PACKED_BYTES(q5_k_r4, DEQUANT_R4_ROWS * 176UL);

/*
 * Q6_K_R4
 *
 *   8+4s+k           | scale s : 8 bits, signed |  of row k                 s = 0..15
 *   72+16s+4k+i      | 16s+12+i : 2, high | 16s+4+i : 2 | 16s+8+i : 2 | 16s+i : 2 |
 */
struct dequant_q6_k_r4 {
    uint16_t d[DEQUANT_R4_ROWS];
    int8_t scales[DEQUANT_N_16][DEQUANT_R4_ROWS];
    struct dequant_r4_pairs qh[DEQUANT_N_32]; /* in the order above */
    struct dequant_r4_nibbles qs[DEQUANT_N_32];
} DEQUANT_PACKED_BYTES(q6_k_r4, DEQUANT_R4_ROWS * 210UL);

/*
 * Q8_K_R8, value = d * q with d as f16, where Q8_K has f32
 *
 *   2k..2k+1     d of row k
 *   16+32r+4k+i  | 4r+i : 8 bits, signed |                                  r = 0..63, i = 0..3
 */
struct dequant_q8_k_r8 {
    uint16_t d[DEQUANT_R8_ROWS];
    uint8_t qs[DEQUANT_SUPERBLOCK / 4][DEQUANT_R8_ROWS][4];
} DEQUANT_PACKED_BYTES(q8_k_r8, DEQUANT_R8_ROWS * 258UL);

/*
 * Q8_K_R16, value = d * (q - 128)
 *
 *   2k..2k+1     d of row k
 *   32+64r+4k+i  | 4r+i : 8 bits |                                          r = 0..63, i = 0..3
 */
struct dequant_q8_k_r16 {
    uint16_t d[DEQUANT_R16_ROWS];
    uint8_t qs[DEQUANT_SUPERBLOCK / 4][DEQUANT_R16_ROWS][4];
} DEQUANT_PACKED_BYTES(q8_k_r16, DEQUANT_R16_ROWS * 258UL);

/* ---- IQ types ---- */

/*
 * Scale and signs of IQ2_XXS_R4 and IQ3_XXS_R4, of a block b of 32 elements
 *
 *   16b+4k+i  | s : 7 | bit i of the scale |    s * 2 xor s = the signs of 8i+7 to 8i  i = 0..3
 */
struct dequant_r4_signs {
    uint8_t bytes[DEQUANT_N_32][DEQUANT_R4_ROWS][4];
} DEQUANT_PACKED;

/*
 * IQ2_XXS_R4
 *
 *   136+16b+4k+i  | q of run 4b+i : 8 |                                     b = 0..7, i = 0..3
 */
struct dequant_iq2_xxs_r4 {
    uint16_t d[DEQUANT_R4_ROWS];
    struct dequant_r4_signs signs;
    uint8_t qs[DEQUANT_N_32][DEQUANT_R4_ROWS][4];
} DEQUANT_PACKED_BYTES(iq2_xxs_r4, DEQUANT_R4_ROWS * 66UL);

/*
 * IQ2_XS_R4
 *
 *   8+32b+8k+2i, +1  | s : 7 | q of run 4b+i : 9 |   s * 2 xor s = the signs    b = 0..7, i = 0..3
 *   264+4b+k         | scale 2b+1 : 4 | scale 2b : 4 |  of row k
 */
struct dequant_iq2_xs_r4 {
    uint16_t d[DEQUANT_R4_ROWS];
    uint16_t runs[DEQUANT_N_32][DEQUANT_R4_ROWS][4];
    uint8_t scales[DEQUANT_N_32][DEQUANT_R4_ROWS];
} DEQUANT_PACKED_BYTES(iq2_xs_r4, DEQUANT_R4_ROWS * 74UL);

/*
 * IQ2_S_R4
 *
 *   8+16b+4k+i    | q of run 4b+i : 8, low |                                b = 0..7, i = 0..3
 *   136+4b+k      | run 4b+3 : 2, high | run 4b+2 : 2 | run 4b+1 : 2 | run 4b : 2 |
 *   168+16b+4k+i  the signs of run 4b+i
 *   296+4b+k      | scale 2b+1 : 4 | scale 2b : 4 |
 */
struct dequant_iq2_s_r4 {
    uint16_t d[DEQUANT_R4_ROWS];
    uint8_t qs[DEQUANT_N_32][DEQUANT_R4_ROWS][4];
    uint8_t qh[DEQUANT_N_32][DEQUANT_R4_ROWS];
    uint8_t signs[DEQUANT_N_32][DEQUANT_R4_ROWS][4];
    uint8_t scales[DEQUANT_N_32][DEQUANT_R4_ROWS];
} DEQUANT_PACKED_BYTES(iq2_s_r4, DEQUANT_R4_ROWS * 82UL);

/*
 * IQ3_XXS_R4
 *
 *   136+32b+8k+i  | q of run 8b+i : 8 |                                     b, i = 0..7
 */
struct dequant_iq3_xxs_r4 {
    uint16_t d[DEQUANT_R4_ROWS];
    struct dequant_r4_signs signs;
    uint8_t qs[DEQUANT_N_32][DEQUANT_R4_ROWS][8];
} DEQUANT_PACKED_BYTES(iq3_xxs_r4, DEQUANT_R4_ROWS * 98UL);

/*
 * IQ3_S_R4
 *
 *   8+32b+8i+4h+k  | q of run 8b+4h+i : 8, low |                      b = 0..7, i = 0..3, h = 0..1
 *   264+4b+k       | run 8b+7 | 8b+6 | 8b+5 | 8b+4 | 8b+3 | 8b+2 | 8b+1 | 8b |  high
 *   296+16b+4k+i   | 28+i | 24+i | 20+i | 16+i | 12+i | 8+i | 4+i | i |  signs of 32b + these
 *   424+4b+k       | scale 4+b : 4 | scale b : 4 |                    b = 0..3
 */
struct dequant_iq3_s_r4 {
    uint16_t d[DEQUANT_R4_ROWS];
    uint8_t qs[DEQUANT_N_32][4][2][DEQUANT_R4_ROWS];
    uint8_t qh[DEQUANT_N_32][DEQUANT_R4_ROWS];
    uint8_t signs[DEQUANT_N_32][DEQUANT_R4_ROWS][4];
    uint8_t scales[DEQUANT_N_32 / 2][DEQUANT_R4_ROWS];
} DEQUANT_PACKED_BYTES(iq3_s_r4, DEQUANT_R4_ROWS * 110UL);

/*
 * IQ4_XS_R8; n = 8b+k for sub-block b of row k
 *
 *   2k..2k+1              d of row k
 *   16+n                  | scale n+48 : 2, high | n+32 : 2 | n+16 : 2 | n : 2 |   n = 0..15
 *   32+n                  | scale n+32 : 4, low | scale n : 4, low |               n = 0..31
 *   64+128b+32r+4k+i      | 32b+8r+4+i : 4 | 32b+8r+i : 4 |           b = 0..7, r, i = 0..3
 */
struct dequant_iq4_xs_r8 {
    uint16_t d[DEQUANT_R8_ROWS];
    uint8_t scales_high[2][DEQUANT_R8_ROWS];
    uint8_t scales_low[4][DEQUANT_R8_ROWS];
    uint8_t qs[DEQUANT_N_32][4][DEQUANT_R8_ROWS][4];
} DEQUANT_PACKED_BYTES(iq4_xs_r8, DEQUANT_R8_ROWS * 136UL);

/*
 * IQ1_S_R4, value = d * (2 * scale + 1) * (grid[q] + shift), shift = minus ? -1/8 : 1/8, d = the
 * f16 row header; run i holds the elements 8i to 8i+7
 *
 *   4i+k           | q of run i : 8, low |                                  i = 0..3
 *   16+2k..17+2k   | minus : 1 | scale : 3 | run 3 : 3, high | 2 : 3 | 1 : 3 | 0 : 3 |
 */
struct dequant_iq1_s_r4 {
    uint8_t qs[4][DEQUANT_R4_ROWS];
    uint16_t qh[DEQUANT_R4_ROWS];
} DEQUANT_PACKED_BYTES(iq1_s_r4, DEQUANT_R4_ROWS * 6UL);

/*
 * IQ1_M_R4, value = d * scale * (grid[q] + shift), d = the f16 row header; run i holds the elements
 * 8i to 8i+7, scale h serves the runs 2h and 2h+1
 *
 *   4i+k     | q of run i : 8, low |                                              i = 0..3
 *   16+4h+k  | minus 2h+1 : 1 | run 2h+1 : 3, high | minus 2h : 1 | run 2h : 3, high |   h = 0..1
 *   24+k     | scale 1 : 4 | scale 0 : 4 |
 */
struct dequant_iq1_m_r4 {
    uint8_t qs[4][DEQUANT_R4_ROWS];
    uint8_t qh[2][DEQUANT_R4_ROWS];
    uint8_t scales[DEQUANT_R4_ROWS];
} DEQUANT_PACKED_BYTES(iq1_m_r4, DEQUANT_R4_ROWS * 7UL);

/* ---- Types whose plain type is ik_llama.cpp's ---- */

/*
 * IQ2_BN_R4, with an f32 row header for each row
 *
 *   16r+4k+i  | 16r+12+i : 2 | 16r+8+i : 2 | 16r+4+i : 2 | 16r+i : 2 |      r, i = 0..3
 */
struct dequant_iq2_bn_r4 {
    uint8_t qs[4][DEQUANT_R4_ROWS][4];
} DEQUANT_PACKED_BYTES(iq2_bn_r4, DEQUANT_R4_ROWS * 16UL);

/*
 * IQ2_K_R4
 *
 *   16+j  | scale n+32 : 4 | scale n : 4 |   n = 4s+k for sub-block s of row k       n, j = 0..31
 */
struct dequant_iq2_k_r4 {
    uint16_t d[DEQUANT_R4_ROWS];
    struct dequant_r4_flags flags;
    uint8_t scales[DEQUANT_N_16 / 2][DEQUANT_R4_ROWS];
    struct dequant_r4_pairs qs[DEQUANT_N_32];
} DEQUANT_PACKED_BYTES(iq2_k_r4, DEQUANT_R4_ROWS * 76UL);

/* IQ3_K_R4, scales as in IQ2_K_R4 */
struct dequant_iq3_k_r4 {
    uint16_t d[DEQUANT_R4_ROWS];
    struct dequant_r4_flags flags;
    struct dequant_r4_flags signs;
    uint8_t scales[DEQUANT_N_16 / 2][DEQUANT_R4_ROWS];
    struct dequant_r4_pairs qs[DEQUANT_N_32];
    struct dequant_r4_bits qh[DEQUANT_N_32];
} DEQUANT_PACKED_BYTES(iq3_k_r4, DEQUANT_R4_ROWS * 110UL);

/* IQ4_K_R4 */
struct dequant_iq4_k_r4 {
    uint16_t d[DEQUANT_R4_ROWS];
    struct dequant_r4_flags flags;
    struct dequant_r4_scales scales;
    struct dequant_r4_nibbles qs[DEQUANT_N_32];
} DEQUANT_PACKED_BYTES(iq4_k_r4, DEQUANT_R4_ROWS * 144UL);

/*
 * IQ5_K_R4
 *
 *   576+16b+4k+i  | 28+i | 20+i | 12+i | 4+i | 24+i | 16+i | 8+i | i |  high bit of the elements
 *                 32b + these                                               b = 0..7, i = 0..3
 */
struct dequant_iq5_k_r4 {
    uint16_t d[DEQUANT_R4_ROWS];
    struct dequant_r4_flags flags;
    struct dequant_r4_scales scales;
    struct dequant_r4_nibbles qs[DEQUANT_N_32];
    struct dequant_r4_bits qh[DEQUANT_N_32];
} DEQUANT_PACKED_BYTES(iq5_k_r4, DEQUANT_R4_ROWS * 176UL);

/*
 * IQ5_KS_R4, with an f32 row header for each row; qs and qh as in IQ5_K_R4
 *
 *   4s+k   | scale s of row k : 8 |                                         s = 0..7
 */
struct dequant_iq5_ks_r4 {
    uint8_t scales[DEQUANT_N_32][DEQUANT_R4_ROWS];
    struct dequant_r4_nibbles qs[DEQUANT_N_32];
    struct dequant_r4_bits qh[DEQUANT_N_32];
} DEQUANT_PACKED_BYTES(iq5_ks_r4, DEQUANT_R4_ROWS * 168UL);

/*
 * IQ4_KS_R4, the values of IQ4_KS, with a row header d for each row
 *
 *   4s+k            | scale s of row k : 8 |                                  s = 0..7
 *   32+64s..95+64s  nibbles, above, of the elements 32s to 32s+31
 */
struct dequant_iq4_ks_r4 {
    uint8_t scales[DEQUANT_SUPERBLOCK / 32][DEQUANT_R4_ROWS];
    struct dequant_r4_nibbles qs[DEQUANT_SUPERBLOCK / 32];
} DEQUANT_PACKED_BYTES(iq4_ks_r4, DEQUANT_R4_ROWS * 136UL);
