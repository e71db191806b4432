/*
 * The blocks of the types of ik_llama.cpp; dequant/blocks.h explains the pictures.
 *
 * The struct of an interleaved type is a stored block: one block of each row of a group, k being
 * the row within the group. Row headers lie before the blocks, see struct dequant_type.
 *
 * Source of the layouts: ggml-common.h and iqk_quantize.cpp of ik_llama.cpp.
 */
#pragma once

#include "dequant/blocks.h"
#include "dequant/small_floats.h"
#include "dequant/stored_row.h"

#include <stddef.h>
#include <string.h>

/* The four rows of the _R4 types. */
#define DEQUANT_R4_ROWS 4

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
 * The 32 nibbles of each of four rows
 *
 *   16l+4k+i  | p+8+i : 4 bits | p+i : 4 |    p = 16(l%2) + 4(l/2)     l, k, i = 0..3; row k
 */
struct dequant_r4_nibbles {
    uint8_t bytes[4][DEQUANT_R4_ROWS][4];
} DEQUANT_PACKED;

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
 * IQ4_KS_R4, the values of IQ4_KS, with a row header d for each row
 *
 *   4s+k            | scale s of row k : 8 |                                  s = 0..7
 *   32+64s..95+64s  nibbles, above, of the elements 32s to 32s+31
 */
struct dequant_iq4_ks_r4 {
    uint8_t scales[DEQUANT_SUPERBLOCK / 32][DEQUANT_R4_ROWS];
    struct dequant_r4_nibbles qs[DEQUANT_SUPERBLOCK / 32];
} DEQUANT_PACKED_BYTES(iq4_ks_r4, DEQUANT_R4_ROWS * 136UL);

/* The f32 header of the row. */
static inline float dequant_f32_row_scale(struct dequant_row row)
{
    float d;

    memcpy(&d, (const uint8_t *)row.headers + row.index * sizeof d, sizeof d);
    return d;
}

/* The f16 header of the row, as a float. */
static inline float dequant_f16_row_scale(struct dequant_row row)
{
    uint16_t d;

    memcpy(&d, (const uint8_t *)row.headers + row.index * sizeof d, sizeof d);
    return dequant_f16_to_f32(d);
}

/* Nibble i of eight: the low halves of four bytes are nibbles 0 to 3, the high halves 4 to 7. */
static inline int dequant_far_nibble(const uint8_t bytes[4], size_t i)
{
    return (bytes[i % 4] >> (4 * (i / 4))) & 15;
}

/* The integer of an IQ4_KS scale, and what its flag adds to the values. */
static inline int dequant_ks_scale(uint8_t scale)
{
    return (scale & 254) - 127;
}

static inline int dequant_ks_shift(uint8_t scale)
{
    return 4 * (scale & 1);
}
