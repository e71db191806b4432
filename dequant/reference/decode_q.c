/* Decoders of the types with one scale per block, Q1_0 to Q8_1. Layouts: dequant/blocks.h. */
#include "dequant/blocks.h"
#include "dequant/slots.h"
#include "dequant/small_floats.h"

static inline void q1_0_block(const struct dequant_q1_0 *restrict block, float *restrict out)
{
    uint32_t minus_d = dequant_bits_of_float(-dequant_f16_to_f32(block->d));

    for (size_t i = 0; i < DEQUANT_Q1_0_BLOCK / 8; i++) {
        uint32_t plus = block->qs[i]; /* a set bit flips the sign bit */

        for (size_t j = 0; j < 8; j++)
            out[8 * i + j] = dequant_float_of_bits(minus_d ^ (plus >> j) << 31);
    }
}

static inline void q2_0_block(const struct dequant_q2_0 *restrict block, float *restrict out)
{
    float d = dequant_f16_to_f32(block->d);

    for (size_t i = 0; i < DEQUANT_Q2_0_BLOCK / 4; i++) {
        for (size_t j = 0; j < 4; j++)
            out[4 * i + j] = (float)(((block->qs[i] >> (2 * j)) & 3) - 1) * d;
    }
}

static inline void q4_0_block(const struct dequant_q4_0 *restrict block, float *restrict out)
{
    float d = dequant_f16_to_f32(block->d);

    for (size_t i = 0; i < DEQUANT_BLOCK / 2; i++) {
        out[i] = (float)((block->qs[i] & 15) - 8) * d;
        out[i + 16] = (float)((block->qs[i] >> 4) - 8) * d;
    }
}

static inline void q4_1_block(const struct dequant_q4_1 *restrict block, float *restrict out)
{
    float d = dequant_f16_to_f32(block->d);
    float m = dequant_f16_to_f32(block->m);

    for (size_t i = 0; i < DEQUANT_BLOCK / 2; i++) {
        out[i] = (float)(block->qs[i] & 15) * d + m;
        out[i + 16] = (float)(block->qs[i] >> 4) * d + m;
    }
}

/* Makes the 32 unsigned 5-bit integers of a block from their low and their high parts. */
static inline void join_5_bits(const uint8_t *restrict low, const uint8_t *restrict high,
                               uint8_t *restrict q)
{
    for (size_t i = 0; i < DEQUANT_BLOCK; i++)
        q[i] = (uint8_t)(((high[i / 8] >> (i % 8)) & 1) << 4);
    for (size_t i = 0; i < DEQUANT_BLOCK / 2; i++) {
        q[i] = (uint8_t)(q[i] | (low[i] & 15));
        q[i + 16] = (uint8_t)(q[i + 16] | (low[i] >> 4));
    }
}

static inline void q5_0_block(const struct dequant_q5_0 *restrict block, float *restrict out)
{
    float d = dequant_f16_to_f32(block->d);
    uint8_t q[DEQUANT_BLOCK];

    join_5_bits(block->qs, block->qh, q);
    for (size_t i = 0; i < DEQUANT_BLOCK; i++)
        out[i] = (float)(q[i] - 16) * d;
}

static inline void q5_1_block(const struct dequant_q5_1 *restrict block, float *restrict out)
{
    float d = dequant_f16_to_f32(block->d);
    float m = dequant_f16_to_f32(block->m);
    uint8_t q[DEQUANT_BLOCK];

    join_5_bits(block->qs, block->qh, q);
    for (size_t i = 0; i < DEQUANT_BLOCK; i++)
        out[i] = (float)q[i] * d + m;
}

static inline void q8_0_block(const struct dequant_q8_0 *restrict block, float *restrict out)
{
    float d = dequant_f16_to_f32(block->d);

    for (size_t i = 0; i < DEQUANT_BLOCK; i++)
        out[i] = (float)block->qs[i] * d;
}

static inline void q8_1_block(const struct dequant_q8_1 *restrict block, float *restrict out)
{
    float d = dequant_f16_to_f32(block->d);

    for (size_t i = 0; i < DEQUANT_BLOCK; i++)
        out[i] = (float)block->qs[i] * d;
}

DEQUANT_DEFINE_DECODER(q1_0, DEQUANT_Q1_0_BLOCK)
DEQUANT_DEFINE_DECODER(q2_0, DEQUANT_Q2_0_BLOCK)
DEQUANT_DEFINE_DECODER(q4_0, DEQUANT_BLOCK)
DEQUANT_DEFINE_DECODER(q4_1, DEQUANT_BLOCK)
DEQUANT_DEFINE_DECODER(q5_0, DEQUANT_BLOCK)
DEQUANT_DEFINE_DECODER(q5_1, DEQUANT_BLOCK)
DEQUANT_DEFINE_DECODER(q8_0, DEQUANT_BLOCK)
DEQUANT_DEFINE_DECODER(q8_1, DEQUANT_BLOCK)
