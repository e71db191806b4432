/*
 * The blocks of the IQ types; dequant/blocks.h explains the pictures.
 *
 * The IQ2, IQ3 and IQ1 types cut a superblock into runs of 8 elements (4 in IQ3) and store for each
 * run an index into a table of runs, a grid (dequant/iq_grids.h), and, except in IQ1, a sign bit
 * per element. "signs of k : 7" is a sign byte without its top bit, the sign of the run's last
 * element, which makes the number of minus signs even.
 */
#pragma once

#include "dequant/blocks.h"

/*
 * IQ2_XXS, value = d * (scale + 1/2) / 4 * sign * grid[q]; run k holds the elements 8k to 8k+7,
 * group g the runs 4g to 4g+3
 *
 *   0..1       d
 *   2+8g+l     | q of run 4g+l : 8 |                                          g = 0..7, l = 0..3
 *   6+8g..9+8g | scale g : 4 | signs of 4g+3 : 7 | of 4g+2 : 7 | of 4g+1 : 7 | of 4g : 7 |
 *
 * ggml declares the groups as 16-bit words, so big-endian files have these words swapped.
 */
struct dequant_iq2_xxs {
    uint16_t d;
    uint16_t groups[DEQUANT_SUPERBLOCK / 32][4];
} DEQUANT_PACKED_BYTES(iq2_xxs, 66);

/*
 * IQ2_XS, value = d * (scale + 1/2) / 4 * sign * grid[q]; run k holds the elements 8k to 8k+7,
 * scale s serves the runs 2s and 2s+1
 *
 *   0..1       d
 *   2+2k..3+2k | signs of k : 7 | q of run k : 9 |                            k = 0..31
 *   66+g       | scale 2g+1 : 4 | scale 2g : 4 |                              g = 0..7
 */
struct dequant_iq2_xs {
    uint16_t d;
    uint16_t runs[DEQUANT_SUPERBLOCK / 8];
    uint8_t scales[DEQUANT_SUPERBLOCK / 32];
} DEQUANT_PACKED_BYTES(iq2_xs, 74);

/*
 * IQ2_S, value = d * (scale + 1/2) / 4 * sign * grid[q]; run k holds the elements 8k to 8k+7,
 * scale s serves the runs 2s and 2s+1
 *
 *   0..1  d
 *   2+k   | q of run k : 8, low |                                             k = 0..31
 *   34+k  | 8k+7 | 8k+6 | 8k+5 | 8k+4 | 8k+3 | 8k+2 | 8k+1 | 8k |  sign
 *   66+g  | run 4g+3 : 2, high | run 4g+2 : 2 | run 4g+1 : 2 | run 4g : 2 |   g = 0..7
 *   74+g  | scale 2g+1 : 4 | scale 2g : 4 |
 */
struct dequant_iq2_s {
    uint16_t d;
    uint8_t qs[DEQUANT_SUPERBLOCK / 8];
    uint8_t signs[DEQUANT_SUPERBLOCK / 8];
    uint8_t qh[DEQUANT_SUPERBLOCK / 32];
    uint8_t scales[DEQUANT_SUPERBLOCK / 32];
} DEQUANT_PACKED_BYTES(iq2_s, 82);

/*
 * IQ3_XXS, value = d * (scale + 1/2) / 2 * sign * grid[q]; run k holds the elements 4k to 4k+3,
 * and the sign byte n serves the runs 2n and 2n+1
 *
 *   0..1         d
 *   2+k          | q of run k : 8 |                                           k = 0..63
 *   66+4g..69+4g | scale g : 4 | signs 4g+3 : 7 | 4g+2 : 7 | 4g+1 : 7 | 4g : 7 |   g = 0..7
 *
 * ggml declares the last part as bytes, so a big-endian file keeps their order.
 */
struct dequant_iq3_xxs {
    uint16_t d;
    uint8_t qs[DEQUANT_SUPERBLOCK / 4];
    uint8_t signs[DEQUANT_SUPERBLOCK / 32][4];
} DEQUANT_PACKED_BYTES(iq3_xxs, 98);

/*
 * IQ3_S, value = d * (2 * scale + 1) * sign * grid[q]; run k holds the elements 4k to 4k+3, scale g
 * serves the runs 8g to 8g+7
 *
 *   0..1   d
 *   2+k    | q of run k : 8, low |                                            k = 0..63
 *   66+g   | run 8g+7 | 8g+6 | 8g+5 | 8g+4 | 8g+3 | 8g+2 | 8g+1 | 8g |  high  g = 0..7
 *   74+i   | 8i+7 | 8i+6 | 8i+5 | 8i+4 | 8i+3 | 8i+2 | 8i+1 | 8i |  sign      i = 0..31
 *   106+j  | scale 2j+1 : 4 | scale 2j : 4 |                                  j = 0..3
 */
struct dequant_iq3_s {
    uint16_t d;
    uint8_t qs[DEQUANT_SUPERBLOCK / 4];
    uint8_t qh[DEQUANT_SUPERBLOCK / 32];
    uint8_t signs[DEQUANT_SUPERBLOCK / 8];
    uint8_t scales[DEQUANT_SUPERBLOCK / 64];
} DEQUANT_PACKED_BYTES(iq3_s, 110);

/*
 * IQ1_S, value = d * (2 * scale + 1) * (grid[q] + shift), shift = minus ? -1/8 : 1/8; run k holds
 * the elements 8k to 8k+7, group g the runs 4g to 4g+3
 *
 *   0..1         d
 *   2+k          | q of run k : 8, low |                                      k = 0..31
 *   34+2g..35+2g | minus g : 1 | scale g : 3 | run 4g+3 : 3, high | 4g+2 : 3 | 4g+1 : 3 | 4g : 3 |
 */
struct dequant_iq1_s {
    uint16_t d;
    uint8_t qs[DEQUANT_SUPERBLOCK / 8];
    uint16_t qh[DEQUANT_SUPERBLOCK / 32];
} DEQUANT_PACKED_BYTES(iq1_s, 50);

/*
 * IQ1_M, value = d * (2 * scale + 1) * (grid[q] + shift), shift = minus ? -1/8 : 1/8; run k holds
 * the elements 8k to 8k+7, scale s serves the runs 2s and 2s+1. The f16 d lies in four parts.
 *
 *   k          | q of run k : 8, low |
 *   32+s       | minus 2s+1 : 1 | run 2s+1 : 3, high | minus 2s : 1 | run 2s : 3, high |
 *   48+2w, +1  | d, bits 4w to 4w+3 | scale 4w+3 : 3 | 4w+2 : 3 | 4w+1 : 3 | 4w : 3 |
 *
 * with k = 0..31, s = 0..15 and w = 0..3.
 *
 * ggml declares the last part as bytes, so a big-endian file keeps their order.
 */
struct dequant_iq1_m {
    uint8_t qs[DEQUANT_SUPERBLOCK / 8];
    uint8_t qh[DEQUANT_SUPERBLOCK / 16];
    uint8_t scales[DEQUANT_SUPERBLOCK / 64][2];
} DEQUANT_PACKED_BYTES(iq1_m, 56);

/*
 * IQ4_NL, value = d * table[q], table = dequant_iq4_values
 *
 *   0..1  d
 *   2+i   | i+16 : 4 | i : 4 |                                                i = 0..15
 */
struct dequant_iq4_nl {
    uint16_t d;
    uint8_t qs[DEQUANT_BLOCK / 2];
} DEQUANT_PACKED_BYTES(iq4_nl, 18);

/*
 * IQ4_XS, value = d * (scale - 32) * table[q], the table as in IQ4_NL; sub-block s holds the
 * elements 32s to 32s+31
 *
 *   0..1     d
 *   2..3     | scale 7 : 2, high | 6 : 2 | 5 : 2 | 4 : 2 | 3 : 2 | 2 : 2 | 1 : 2 | scale 0 : 2 |
 *   4+j      | scale 2j+1 : 4, low | scale 2j : 4, low |                      j = 0..3
 *   8+16s+i  | 32s+16+i : 4 | 32s+i : 4 |                                     s = 0..7, i = 0..15
 */
struct dequant_iq4_xs {
    uint16_t d;
    uint16_t scales_high;
    uint8_t scales_low[DEQUANT_SUPERBLOCK / 64];
    uint8_t qs[DEQUANT_SUPERBLOCK / 32][16];
} DEQUANT_PACKED_BYTES(iq4_xs, 136);

/* Add the eighth sign bit to seven: it makes the number of set bits even. */
static inline unsigned dequant_even_signs(unsigned signs)
{
    signs &= 127;
    return signs | (unsigned)__builtin_parity(signs) << 7;
}
