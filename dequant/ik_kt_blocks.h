/*
 * The blocks of the trellis types (KT) of ik_llama.cpp, whose values are pseudo-random numbers:
 * each seed gives a run of them. dequant/blocks.h explains the pictures.
 *
 * Source of the layouts: ggml-common.h and iqk_quantize.cpp of ik_llama.cpp.
 */
#pragma once

#include "dequant/blocks.h"

/*
 * The state of the generator starts at the seed plus DEQUANT_TRELLIS_OFFSET. Each value of the run,
 * also the first, multiplies the state by DEQUANT_TRELLIS_FACTOR (modulo 2^32).
 */
#define DEQUANT_TRELLIS_FACTOR 0xcbac1fedu
#define DEQUANT_TRELLIS_OFFSET 4096u

/* The lower six bits of each byte of a state count. */
#define DEQUANT_TRELLIS_BITS 0x3f3f3f3fu

/* The value of a state, -126 to 126: the sum of the four six-bit numbers, less 126. */
static inline int dequant_trellis_value(uint32_t state)
{
    const uint32_t bits = state & DEQUANT_TRELLIS_BITS;

    return (int)((bits & 63) + ((bits >> 8) & 63) + ((bits >> 16) & 63) + (bits >> 24)) - 126;
}

/*
 * Until 2025-06-18 a value was made by another generator: the state is multiplied by the factor and
 * increased by the addend (modulo 2^32); its bits under DEQUANT_OLD_TRELLIS_BITS, some of them
 * flipped, are two f16, whose sum is the value. d counts DEQUANT_OLD_TRELLIS_SCALE times instead of
 * 1.05 or 1.01 times. IQ4_KT had a second float in the row header, which is added to all values.
 */
#define DEQUANT_OLD_TRELLIS_FACTOR 89226354u
#define DEQUANT_OLD_TRELLIS_ADDEND 64248484u
#define DEQUANT_OLD_TRELLIS_BITS   0x8fff8fffu
#define DEQUANT_OLD_TRELLIS_FLIPS  0x3b603b60u
#define DEQUANT_OLD_TRELLIS_SCALE  31.75F

/*
 * ik_llama.cpp multiplies by matrices of these types as if d were larger by these factors. Its
 * conversion to floats on the CPU leaves them out; here they count, as in its other backends.
 */
#define DEQUANT_IQ2_KT_FACTOR 1.05F
#define DEQUANT_IQ3_KT_FACTOR 1.01F

/*
 * IQ1_KT, value = d * table[scale] * v, d = the f32 row header, table = dequant_iq4_values, v =
 * value j of seed i; element 8i+j; sub-block b has the seeds 4b to 4b+3
 *
 *   b     | bit 12 of seed 4b+3 : 1 | 4b+2 : 1 | 4b+1 : 1 | 4b : 1 | scale b : 4 |    b = 0..7
 *   8+i   | bits 0 to 7 of seed i : 8 |                                               i = 0..31
 *   40+i  | bits 8 to 11 of seed i+16 : 4 | of seed i : 4 |                           i = 0..15
 */
struct dequant_iq1_kt {
    uint8_t scales[DEQUANT_SUPERBLOCK / 32];
    uint8_t seeds_low[DEQUANT_SUPERBLOCK / 8];
    uint8_t seeds_high[DEQUANT_SUPERBLOCK / 16];
} DEQUANT_PACKED_BYTES(iq1_kt, 56);

/*
 * IQ2_KT, value = d * 1.05 * table[scale] * v, the rest as in IQ1_KT
 *
 *   i             | scale i+4 : 4 | scale i : 4 |                                     i = 0..3
 *   4+2i..4+2i+1  | seed i : 16 |                                                     i = 0..31
 */
struct dequant_iq2_kt {
    uint8_t scales[DEQUANT_SUPERBLOCK / 64];
    uint16_t seeds[DEQUANT_SUPERBLOCK / 8];
} DEQUANT_PACKED_BYTES(iq2_kt, 68);

/*
 * IQ3_KT, value = d * 1.01 * scale * |v|, minus where the sign is set, the rest as in IQ1_KT
 *
 *   i             | scale i+4 : 4 | scale i : 4 |                                     i = 0..3
 *   4+2i..4+2i+1  | seed i : 16 |                                                     i = 0..31
 *   68+j          | sign of element j+224 : 1 | … | j+32 : 1 | j : 1 |                j = 0..31
 */
struct dequant_iq3_kt {
    uint8_t scales[DEQUANT_SUPERBLOCK / 64];
    uint16_t seeds[DEQUANT_SUPERBLOCK / 8];
    uint8_t signs[DEQUANT_SUPERBLOCK / 8];
} DEQUANT_PACKED_BYTES(iq3_kt, 100);

/*
 * IQ4_KT, value = d * (scale - 64) * v, d = the f32 row header, v = value j of seed i; element
 * 4i+j; sub-block b has the seeds 8b to 8b+7
 *
 *   4b..4b+3  | bits 12 to 14 of seed 8b+7 : 3 | … | of seed 8b : 3 | scale b : 7 | bit 15 of all :
 * 1 | 32+i      | bits 0 to 7 of seed i : 8 |                                           i = 0..63
 *   96+i      | bits 8 to 11 of seed i+32 : 4 | of seed i : 4 |                       i = 0..31
 */
struct dequant_iq4_kt {
    uint32_t words[DEQUANT_SUPERBLOCK / 32];
    uint8_t seeds_low[DEQUANT_SUPERBLOCK / 4];
    uint8_t seeds_high[DEQUANT_SUPERBLOCK / 8];
} DEQUANT_PACKED_BYTES(iq4_kt, 128);
