/*
 * The blocks of further candidate types (dequant_candidate_at()), of forks and of former versions
 * of llama.cpp and ik_llama.cpp. dequant/blocks.h explains the pictures, dequant/ik_row_blocks.h
 * the pictures of interleaved rows.
 *
 * Source of the layouts: ggml-common.h and ggml-quants.c of PrismML's llama.cpp and of
 * llama-turboquant, ggml-common.h and iqk_quantize.cpp of ik_llama.cpp before 2025-01-27, and
 * ggml-cpu-aarch64.c of llama.cpp of November 2024 (IQ4_NL_4_4).
 */
#pragma once

#include "dequant/ik_row_blocks.h"

/* Elements of a block of PQ2_0 and PTQ1_0. */
#define DEQUANT_PRISM_BLOCK 128

/* ---- PrismML ---- */

/* Q1_0 in groups of 32, value = q ? d : -d; the bits as in Q1_0 */
struct dequant_q1_0_g32 {
    uint16_t d;
    uint8_t qs[DEQUANT_BLOCK / 8];
} DEQUANT_PACKED_BYTES(q1_0_g32, 6);

/* PQ2_0, value = (q - 1) * d: Q2_0 in groups of 128 */
struct dequant_pq2_0 {
    uint16_t d;
    uint8_t qs[DEQUANT_PRISM_BLOCK / 4];
} DEQUANT_PACKED_BYTES(pq2_0, 34);

/*
 * PTQ1_0, value = (q - 1) * d; digits as in TQ1_0
 *
 *   l      digits of l, 16+l, 32+l, 48+l, 64+l                                l = 0..15
 *   16+l   digits of 80+l, 88+l, 96+l, 104+l, 112+l                           l = 0..7
 *   24+l   digits of 120+l, 122+l, 124+l, 126+l                               l = 0..1
 *   26..27 d
 */
struct dequant_ptq1_0 {
    uint8_t wide[16];
    uint8_t narrow[8];
    uint8_t tail[2];
    uint16_t d;
} DEQUANT_PACKED_BYTES(ptq1_0, 28);

/* ---- BitNet ---- */

/*
 * TL1: four elements in a byte, in an order that depends on the kernels that were compiled for the
 * shape; the tail starts with an f32 scale.
 */
struct dequant_tl1 {
    uint8_t bytes[1];
} DEQUANT_PACKED;

/* TL2: no blocks; the size follows from the rows, see tl2_bytes() in dequant/type_table.c. */
struct dequant_tl2 {
    uint8_t bytes[1];
} DEQUANT_PACKED;

/* ---- llama-turboquant ---- */

/*
 * TQ3_0, value = sign / sqrt(32) * (Walsh-Hadamard transform of d * centroid[q] over the block).
 * The bits of `residual_signs` do not count.
 *
 *   i      | 4i+3 : 2 bits | 4i+2 : 2 | 4i+1 : 2 | 4i : 2 |                   i = 0..7
 *   8+i    | residual sign of 8i+7 : 1 | … | of 8i : 1 |                      i = 0..3
 *   12..13 d
 */
struct dequant_tq3_0 {
    uint8_t qs[DEQUANT_BLOCK / 4];
    uint8_t residual_signs[DEQUANT_BLOCK / 8];
    uint16_t d;
} DEQUANT_PACKED_BYTES(tq3_0, 14);

/* ---- ik_llama.cpp until September and October 2024 ---- */

/*
 * IQ2_TN of 2024-08, value = (q - 1) * d; bits as in TQ2_0
 *
 *   0..1   d
 */
struct dequant_iq2_tn {
    uint16_t d;
    uint8_t qs[DEQUANT_SUPERBLOCK / 4];
} DEQUANT_PACKED_BYTES(iq2_tn, 66);

/* IQ2_TN of 2024-10, value = (q - 1) * d, d = the f32 row header; bits as in TQ2_0 */
struct dequant_row_iq2_tn {
    uint8_t qs[DEQUANT_SUPERBLOCK / 4];
} DEQUANT_PACKED;

/* ---- Four interleaved rows: ggml of November 2024, ik_llama.cpp until 2025-01-27 ---- */

/* IQ4_NL_4_4: the bytes of Q4_0_4_4, as in IQ4_NL; no bits are inverted */
DEQUANT_RUNS(iq4_nl_4_4, uint16_t, d, 4, 4);

/* Q4_0_R4, value = d * (q - 8) */
struct dequant_q4_0_r4 {
    uint16_t d[DEQUANT_R4_ROWS];
    struct dequant_r4_nibbles qs;
} DEQUANT_PACKED_BYTES(q4_0_r4, DEQUANT_R4_ROWS * 18UL);

/*
 * Q8_0_R4
 *
 *   2k..2k+1         d of row k
 *   8+32r+16h+4k+i   | 16h+4r+i : 8 bits, signed |                  r = 0..3, h = 0..1, i = 0..3
 */
struct dequant_q8_0_r4 {
    uint16_t d[DEQUANT_R4_ROWS];
    int8_t qs[4][2][DEQUANT_R4_ROWS][4];
} DEQUANT_PACKED_BYTES(q8_0_r4, DEQUANT_R4_ROWS * 34UL);

/*
 * IQ4_XS_R4; n = 4b+k for sub-block b of row k
 *
 *   2k..2k+1  d of row k
 *   8+n       | scale n+24 : 2, high | n+16 : 2 | n+8 : 2 | n : 2 |           n = 0..7
 *   16+n      | scale n+16 : 4, low | scale n : 4, low |                      n = 0..15
 *   32+64b..  nibbles of the elements 32b to 32b+31                           b = 0..7
 */
struct dequant_iq4_xs_r4 {
    uint16_t d[DEQUANT_R4_ROWS];
    uint8_t scales_high[8];
    uint8_t scales_low[16];
    struct dequant_r4_nibbles qs[DEQUANT_N_32];
} DEQUANT_PACKED_BYTES(iq4_xs_r4, DEQUANT_R4_ROWS * 136UL);
