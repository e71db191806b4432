/* Decoders of the K types. Layouts: dequant/blocks.h. */
#include "dequant/blocks.h"
#include "dequant/slots.h"
#include "dequant/small_floats.h"

static inline void q2_k_block(const struct dequant_q2_k *restrict block, float *restrict out)
{
    float d = dequant_f16_to_f32(block->d);
    float m = dequant_f16_to_f32(block->m);

    for (size_t s = 0; s < DEQUANT_SUPERBLOCK / 16; s++) {
        const uint8_t *q = &block->qs[32 * (s / 8) + 16 * (s % 2)];
        size_t shift = 2 * (s / 2 % 4);
        float scale = d * (float)(block->scales[s] & 15);
        float min = m * (float)(block->scales[s] >> 4);

        for (size_t i = 0; i < 16; i++)
            out[16 * s + i] = scale * (float)((q[i] >> shift) & 3) - min;
    }
}

static inline void q3_k_block(const struct dequant_q3_k *restrict block, float *restrict out)
{
    float d = dequant_f16_to_f32(block->d);

    for (size_t s = 0; s < DEQUANT_SUPERBLOCK / 16; s++) {
        const uint8_t *low = &block->qs[32 * (s / 8) + 16 * (s % 2)];
        const uint8_t *high = &block->qh[16 * (s % 2)];
        size_t low_shift = 2 * (s / 2 % 4);
        size_t high_shift = s / 2;
        int scale_low = (block->scales_low[s % 8] >> (4 * (s / 8))) & 15;
        int scale_high = (block->scales_high[s % 4] >> (2 * (s / 4))) & 3;
        float scale = d * (float)((scale_high << 4 | scale_low) - 32);

        for (size_t i = 0; i < 16; i++) {
            int q = ((high[i] >> high_shift) & 1) << 2 | ((low[i] >> low_shift) & 3);

            out[16 * s + i] = scale * (float)(q - 4);
        }
    }
}

/* Scale `s` of a Q4_K or Q5_K block, from 0 to 63. */
static inline int k_scale(const struct dequant_k_scales *scales, size_t s)
{
    if (s < 4)
        return scales->scales[s] & 63;
    return (scales->low[s - 4] & 15) | (scales->scales[s - 4] >> 6) << 4;
}

/* Minimum `s` of a Q4_K or Q5_K block, from 0 to 63. */
static inline int k_min(const struct dequant_k_scales *scales, size_t s)
{
    if (s < 4)
        return scales->mins[s] & 63;
    return scales->low[s - 4] >> 4 | (scales->mins[s - 4] >> 6) << 4;
}

/* The 256 elements of a Q4_K or Q5_K block; `qh` is NULL if they have no fifth bit. */
static inline void put_k(const struct dequant_k_scales *scales, float d, float m, const uint8_t *qs,
                         const uint8_t *qh, float *restrict out)
{
    for (size_t s = 0; s < DEQUANT_SUPERBLOCK / 32; s++) {
        const uint8_t *low = &qs[32 * (s / 2)];
        size_t shift = 4 * (s % 2);
        float scale = d * (float)k_scale(scales, s);
        float min = m * (float)k_min(scales, s);

        for (size_t i = 0; i < 32; i++) {
            int high = qh ? (qh[i] >> s) & 1 : 0;

            out[32 * s + i] = scale * (float)(high << 4 | ((low[i] >> shift) & 15)) - min;
        }
    }
}

static inline void q4_k_block(const struct dequant_q4_k *restrict block, float *restrict out)
{
    put_k(&block->scales, dequant_f16_to_f32(block->d), dequant_f16_to_f32(block->m), block->qs,
          NULL, out);
}

static inline void q5_k_block(const struct dequant_q5_k *restrict block, float *restrict out)
{
    put_k(&block->scales, dequant_f16_to_f32(block->d), dequant_f16_to_f32(block->m), block->qs,
          block->qh, out);
}

static inline void q6_k_block(const struct dequant_q6_k *restrict block, float *restrict out)
{
    float d = dequant_f16_to_f32(block->d);

    for (size_t s = 0; s < DEQUANT_SUPERBLOCK / 16; s++) {
        const uint8_t *low = &block->ql[64 * (s / 8) + 16 * (s % 4)];
        const uint8_t *high = &block->qh[32 * (s / 8) + 16 * (s % 2)];
        size_t low_shift = 4 * (s / 4 % 2);
        size_t high_shift = 2 * (s / 2 % 4);
        float scale = d * (float)block->scales[s];

        for (size_t i = 0; i < 16; i++) {
            int q = ((high[i] >> high_shift) & 3) << 4 | ((low[i] >> low_shift) & 15);

            out[16 * s + i] = scale * (float)(q - 32);
        }
    }
}

static inline void q8_k_block(const struct dequant_q8_k *restrict block, float *restrict out)
{
    float d = block->d;

    for (size_t i = 0; i < DEQUANT_SUPERBLOCK; i++)
        out[i] = d * (float)block->qs[i];
}

DEQUANT_DEFINE_DECODER(q2_k, DEQUANT_SUPERBLOCK)
DEQUANT_DEFINE_DECODER(q3_k, DEQUANT_SUPERBLOCK)
DEQUANT_DEFINE_DECODER(q4_k, DEQUANT_SUPERBLOCK)
DEQUANT_DEFINE_DECODER(q5_k, DEQUANT_SUPERBLOCK)
DEQUANT_DEFINE_DECODER(q6_k, DEQUANT_SUPERBLOCK)
DEQUANT_DEFINE_DECODER(q8_k, DEQUANT_SUPERBLOCK)
