/* Decoders of Q6_0, Q8_KV and the ternary types of ik_llama.cpp. Layouts: dequant/ik_k_blocks.h. */
#include "dequant/ik_k_blocks.h"
#include "dequant/slots.h"

static inline void i2_s_block(const struct dequant_i2_s *restrict block, struct dequant_row row,
                              float *restrict out)
{
    const float d = dequant_f32_row_scale(row);

    for (size_t i = 0; i < DEQUANT_I2_S_BLOCK; i++)
        out[i] = d * (float)(((block->qs[i % 32] >> (6 - i / 32 * 2)) & 3) - 1);
}

static inline void iq1_bn_block(const struct dequant_iq1_bn *restrict block, struct dequant_row row,
                                float *restrict out)
{
    static const uint8_t factors[5] = {81, 27, 9, 3, 1};
    const float d = dequant_f16_row_scale(row);

    for (size_t i = 0; i < DEQUANT_BN_BLOCK; i++) {
        const size_t e = i % 16;
        const uint8_t byte = e < 15 ? block->fives[i / 16][e / 5] : block->rest;
        const uint8_t fraction = (uint8_t)(byte * factors[e < 15 ? e % 5 : i / 16]);

        out[i] = d * (float)((fraction * 3 >> 8) - 1);
    }
}

static inline void iq2_bn_block(const struct dequant_iq2_bn *restrict block, struct dequant_row row,
                                float *restrict out)
{
    const float d = dequant_f32_row_scale(row);

    for (size_t i = 0; i < DEQUANT_BN_BLOCK; i++)
        out[i] = d * (float)(((block->qs[i % 16] >> (i / 16 * 2)) & 3) - 1);
}

static inline void q6_0_block(const struct dequant_q6_0 *restrict block, float *restrict out)
{
    const float d = dequant_f16_to_f32(block->d);

    for (size_t i = 0; i < 16; i++) {
        const int high = block->qh[i % 8] >> (i / 8 * 4);
        const int low = block->qs[i];

        out[i] = d * (float)(((low & 15) | (high & 3) << 4) - 32);
        out[i + 16] = d * (float)(((low >> 4) | (high & 12) << 2) - 32);
    }
}

static inline void q8_kv_block(const struct dequant_q8_kv *restrict block, struct dequant_row row,
                               float *restrict out)
{
    const float d = dequant_f32_row_scale(row);

    for (size_t i = 0; i < DEQUANT_BLOCK; i++)
        out[i] = d * (float)block->qs[i];
}

DEQUANT_DEFINE_ROW_DECODER(i2_s, DEQUANT_I2_S_BLOCK)
DEQUANT_DEFINE_ROW_DECODER(iq1_bn, DEQUANT_BN_BLOCK)
DEQUANT_DEFINE_ROW_DECODER(iq2_bn, DEQUANT_BN_BLOCK)
DEQUANT_DEFINE_DECODER(q6_0, DEQUANT_BLOCK)
DEQUANT_DEFINE_ROW_DECODER(q8_kv, DEQUANT_BLOCK)
