/* Decoders of types of forks that are seldom decoded. */
#include "dequant/fork_blocks.h"
#include "dequant/ik_kt_blocks.h"
#include "dequant/iq_grids.h"
#include "dequant/slots.h"

#include <math.h>

/* The order of the operations is llama-turboquant's. */
static inline void tq3_0_block(const struct dequant_tq3_0 *restrict block, struct dequant_row row,
                               float *restrict out)
{
    static const float centroids[4] = {-1.510F, -0.4528F, 0.4528F, 1.510F};
    static const uint32_t minus = 0xb1a6d4b2; /* bit i: the sign of element i */
    const float d = dequant_f16_to_f32(block->d);

    for (size_t i = 0; i < DEQUANT_BLOCK; i++)
        out[i] = d * centroids[(block->qs[i / 4] >> (i % 4 * 2)) & 3];
    for (size_t step = 1; step < DEQUANT_BLOCK; step *= 2) {
        for (size_t i = 0; i < DEQUANT_BLOCK; i++) {
            const float a = out[i & ~step], b = out[i | step];

            if (i & step)
                continue;
            out[i] = a + b;
            out[i + step] = a - b;
        }
    }
    for (size_t i = 0; i < DEQUANT_BLOCK; i++)
        out[i] *= (minus >> i) & 1 ? -0.17677669529663688F : 0.17677669529663688F;
}

DEQUANT_DEFINE_DECODER(tq3_0, tq3_0, DEQUANT_BLOCK)

/* ---- The trellis types of ik_llama.cpp until 2025-06-18 ---- */

#define N_8 (DEQUANT_SUPERBLOCK / 8)

/* Seed i, with bit 15 of all. */
static inline uint32_t iq4_kt_seed(const struct dequant_iq4_kt *block, size_t i)
{
    const uint32_t word = block->words[i / 8];
    const uint32_t high = (uint32_t)block->seeds_high[i % 32] >> (4 * (i / 32));

    return block->seeds_low[i] | (high & 15) << 8 | ((word >> (8 + 3 * (i % 8))) & 7) << 12 |
           (word & 1) << 15;
}

/* Advance the state of the old generator and return the next value. */
static inline float next_old_value(uint32_t *state)
{
    uint32_t halves;

    *state = *state * DEQUANT_OLD_TRELLIS_FACTOR + DEQUANT_OLD_TRELLIS_ADDEND;
    halves = (*state & DEQUANT_OLD_TRELLIS_BITS) ^ DEQUANT_OLD_TRELLIS_FLIPS;
    return dequant_f16_to_f32((uint16_t)halves) + dequant_f16_to_f32((uint16_t)(halves >> 16));
}

static inline void old_iq2_kt_block(const struct dequant_iq2_kt *restrict block,
                                    struct dequant_row row, float *restrict out)
{
    const float d = dequant_f32_row_scale(row) * DEQUANT_OLD_TRELLIS_SCALE;

    for (size_t i = 0; i < N_8; i++) {
        const float scale = d * (float)dequant_iq4_values[dequant_far_nibble(block->scales, i / 4)];
        uint32_t state = block->seeds[i] + DEQUANT_TRELLIS_OFFSET;

        for (size_t j = 0; j < 8; j++)
            out[8 * i + j] = scale * next_old_value(&state);
    }
}

static inline void old_iq3_kt_block(const struct dequant_iq3_kt *restrict block,
                                    struct dequant_row row, float *restrict out)
{
    const float d = dequant_f32_row_scale(row) * DEQUANT_OLD_TRELLIS_SCALE;

    for (size_t i = 0; i < N_8; i++) {
        const float scale = d * (float)dequant_far_nibble(block->scales, i / 4);
        uint32_t state = block->seeds[i] + DEQUANT_TRELLIS_OFFSET;

        for (size_t j = 0; j < 8; j++) {
            const bool is_minus = (block->signs[i % 4 * 8 + j] >> (i / 4)) & 1;

            out[8 * i + j] = (is_minus ? -scale : scale) * fabsf(next_old_value(&state));
        }
    }
}

/* The second float of the row header is added to all elements. */
static inline void old_iq4_kt_block(const struct dequant_iq4_kt *restrict block,
                                    struct dequant_row row, float *restrict out)
{
    const float d = dequant_f32_row_scale(row) * DEQUANT_OLD_TRELLIS_SCALE;
    const float mean = dequant_f32_row_scale((struct dequant_row){row.headers, 1});

    for (size_t i = 0; i < DEQUANT_SUPERBLOCK / 4; i++) {
        const float scale = d * (float)((int)((block->words[i / 8] >> 1) & 127) - 64);
        uint32_t state = iq4_kt_seed(block, i) + DEQUANT_TRELLIS_OFFSET;

        for (size_t j = 0; j < 4; j++)
            out[4 * i + j] = scale * next_old_value(&state) + mean;
    }
}

DEQUANT_DEFINE_DECODER(old_iq2_kt, iq2_kt, DEQUANT_SUPERBLOCK)
DEQUANT_DEFINE_DECODER(old_iq3_kt, iq3_kt, DEQUANT_SUPERBLOCK)
DEQUANT_DEFINE_DECODER(old_iq4_kt, iq4_kt, DEQUANT_SUPERBLOCK)
