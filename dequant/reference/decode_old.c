/* Decoders of the old layouts, by era. Layouts: dequant/old_blocks.h. */
#include "dequant/slots.h"
#include "dequant/old_blocks.h"
#include "dequant/small_floats.h"

/* n pairs of neighbours, (q - 8) * d. */
static inline void put_pairs(const uint8_t *restrict qs, size_t n, float d, float *restrict out)
{
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = (float)((qs[i] & 15) - 8) * d;
        out[2 * i + 1] = (float)((qs[i] >> 4) - 8) * d;
    }
}

/* n pairs of neighbours, q * d + m. */
static inline void put_pairs_plus(const uint8_t *restrict qs, size_t n, float d, float m,
                                  float *restrict out)
{
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = (float)(qs[i] & 15) * d + m;
        out[2 * i + 1] = (float)(qs[i] >> 4) * d + m;
    }
}

static inline void era0_q4_0_block(const struct dequant_old_q4_0 *restrict block,
                                   float *restrict out)
{
    put_pairs(block->qs, DEQUANT_BLOCK / 2, block->d, out);
}

static inline void era0_q4_1_block(const struct dequant_old_q4_1 *restrict block,
                                   float *restrict out)
{
    put_pairs_plus(block->qs, DEQUANT_BLOCK / 2, block->d, block->m, out);
}

static inline void era0_q4_2_block(const struct dequant_old_q4_2 *restrict block,
                                   float *restrict out)
{
    put_pairs(block->qs, DEQUANT_HALF_BLOCK / 2, dequant_f16_to_f32(block->d), out);
}

static inline void era0_q4_3_block(const struct dequant_old_q4_3 *restrict block,
                                   float *restrict out)
{
    put_pairs_plus(block->qs, DEQUANT_HALF_BLOCK / 2, dequant_f16_to_f32(block->d),
                   dequant_f16_to_f32(block->m), out);
}

/* The fifth bit of element i, as 0 or 16. */
static inline int fifth_bit(const uint8_t *qh, size_t i)
{
    return ((qh[i / 8] >> (i % 8)) & 1) << 4;
}

static inline void era0_q5_0_block(const struct dequant_q5_0 *restrict block, float *restrict out)
{
    float d = dequant_f16_to_f32(block->d);

    for (size_t i = 0; i < DEQUANT_BLOCK; i++) {
        int low = (block->qs[i / 2] >> (4 * (i % 2))) & 15;

        out[i] = (float)((low | fifth_bit(block->qh, i)) - 16) * d;
    }
}

static inline void era0_q5_1_block(const struct dequant_q5_1 *restrict block, float *restrict out)
{
    float d = dequant_f16_to_f32(block->d);
    float m = dequant_f16_to_f32(block->m);

    for (size_t i = 0; i < DEQUANT_BLOCK; i++) {
        int low = (block->qs[i / 2] >> (4 * (i % 2))) & 15;

        out[i] = (float)(low | fifth_bit(block->qh, i)) * d + m;
    }
}

static inline void era1_q4_0_block(const struct dequant_old_q4_0 *restrict block,
                                   float *restrict out)
{
    float d = block->d;

    for (size_t i = 0; i < DEQUANT_BLOCK / 2; i++) {
        out[i] = (float)((block->qs[i] & 15) - 8) * d;
        out[i + 16] = (float)((block->qs[i] >> 4) - 8) * d;
    }
}

static inline void era1_q4_1_block(const struct dequant_old_q4_1 *restrict block,
                                   float *restrict out)
{
    float d = block->d;
    float m = block->m;

    for (size_t i = 0; i < DEQUANT_BLOCK / 2; i++) {
        out[i] = (float)(block->qs[i] & 15) * d + m;
        out[i + 16] = (float)(block->qs[i] >> 4) * d + m;
    }
}

static inline void old_q8_0_block(const struct dequant_old_q8_0 *restrict block,
                                  float *restrict out)
{
    float d = block->d;

    for (size_t i = 0; i < DEQUANT_BLOCK; i++)
        out[i] = (float)block->qs[i] * d;
}

DEQUANT_DEFINE_DECODER_OF(era0_q4_0, old_q4_0, DEQUANT_BLOCK)
DEQUANT_DEFINE_DECODER_OF(era0_q4_1, old_q4_1, DEQUANT_BLOCK)
DEQUANT_DEFINE_DECODER_OF(era0_q4_2, old_q4_2, DEQUANT_HALF_BLOCK)
DEQUANT_DEFINE_DECODER_OF(era0_q4_3, old_q4_3, DEQUANT_HALF_BLOCK)
DEQUANT_DEFINE_DECODER_OF(era0_q5_0, q5_0, DEQUANT_BLOCK)
DEQUANT_DEFINE_DECODER_OF(era0_q5_1, q5_1, DEQUANT_BLOCK)
DEQUANT_DEFINE_DECODER_OF(era1_q4_0, old_q4_0, DEQUANT_BLOCK)
DEQUANT_DEFINE_DECODER_OF(era1_q4_1, old_q4_1, DEQUANT_BLOCK)
DEQUANT_DEFINE_DECODER(old_q8_0, DEQUANT_BLOCK)
