/*
 * Decoders of the K, KS, KSS and KL types of ik_llama.cpp that do not interleave rows. Layouts:
 * dequant/ik_k_blocks.h.
 */
#include "dequant/ik_k_blocks.h"
#include "dequant/ik_tables.h"
#include "dequant/iq_grids.h"
#include "dequant/slots.h"

#define N_16 (DEQUANT_SUPERBLOCK / 16)
#define N_32 (DEQUANT_SUPERBLOCK / 32)

/* Bits 4i to 4i + 3. */
static inline int nibble(const uint8_t *nibbles, size_t i)
{
    return (nibbles[i / 2] >> (4 * (i % 2))) & 15;
}

/* The two bits of element e; 32 bytes hold 128 elements. */
static inline int two_bits(const uint8_t *bytes, size_t e)
{
    return (bytes[e / 128 * 32 + e % 32] >> (2 * (e % 128 / 32))) & 3;
}

/* 32 bytes hold 64 elements. */
static inline int four_bits(const uint8_t *bytes, size_t e)
{
    return (bytes[e / 64 * 32 + e % 32] >> (4 * (e % 64 / 32))) & 15;
}

/* 32 bytes hold 256 elements. */
static inline int one_bit(const uint8_t *bytes, size_t e)
{
    return (bytes[e % 32] >> (e / 32)) & 1;
}

static inline int scale_of(const struct dequant_ik_scales *scales, size_t s)
{
    return (nibble(scales->low, s) | ((scales->high[s / 4] >> (2 * (s % 4))) & 3) << 4) - 32;
}

/* A scale is the nibble times `factor`, less `bias`. */
static inline void put_iq2_k(const struct dequant_iq2_k *restrict block, int factor, int bias,
                             float *restrict out)
{
    const float d = dequant_f16_to_f32(block->d);

    for (size_t s = 0; s < N_16; s++) {
        const float scale = d * (float)(factor * nibble(block->scales, s) - bias);
        const int8_t *values = dequant_iq2_k_values[(block->flags >> s) & 1];

        for (size_t e = 16 * s; e < 16 * s + 16; e++)
            out[e] = scale * (float)values[two_bits(block->qs, e)];
    }
}

static inline void iq2_k_block(const struct dequant_iq2_k *restrict block, float *restrict out)
{
    put_iq2_k(block, 1, 8, out);
}

/* Until 2024-10-13. */
static inline void old_iq2_k_block(const struct dequant_iq2_k *restrict block, float *restrict out)
{
    put_iq2_k(block, 2, 15, out);
}

static inline void iq3_k_block(const struct dequant_iq3_k *restrict block, float *restrict out)
{
    const float d = dequant_f16_to_f32(block->d);

    for (size_t s = 0; s < N_16; s++) {
        const int magnitude = 2 * nibble(block->scales, s) + 1;
        const float scale = d * (float)((block->signs >> s) & 1 ? -magnitude : magnitude);
        const int8_t *values = dequant_iq3_k_values[(block->flags >> s) & 1];

        for (size_t e = 16 * s; e < 16 * s + 16; e++)
            out[e] = scale * (float)values[two_bits(block->qs, e) | one_bit(block->qh, e) << 2];
    }
}

static inline void iq4_k_block(const struct dequant_iq4_k *restrict block, float *restrict out)
{
    const float d = dequant_f16_to_f32(block->d);

    for (size_t s = 0; s < N_16; s++) {
        const float scale = d * (float)scale_of(&block->scales, s);
        const int shift = 4 * ((block->flags >> s) & 1);

        for (size_t i = 0; i < 16; i++) {
            const int q = (block->qs[s / 2][i] >> (4 * (s % 2))) & 15;

            out[16 * s + i] = scale * (float)(dequant_iq4_values[q] + shift);
        }
    }
}

static inline void iq5_k_block(const struct dequant_iq5_k *restrict block, float *restrict out)
{
    const float d = dequant_f16_to_f32(block->d);

    for (size_t s = 0; s < N_16; s++) {
        const float scale = d * (float)scale_of(&block->scales, s);
        const int shift = 2 * ((block->flags >> s) & 1);

        for (size_t e = 16 * s; e < 16 * s + 16; e++) {
            const int q = four_bits(block->qs, e) | one_bit(block->qh, e) << 4;

            out[e] = scale * (float)(dequant_iq5_k_values[q] + shift);
        }
    }
}

static inline void iq6_k_block(const struct dequant_iq6_k *restrict block, float *restrict out)
{
    const float d = dequant_f16_to_f32(block->d);

    for (size_t s = 0; s < N_16; s++) {
        const float scale = d * (float)block->scales[s];
        const int shift = (block->flags >> s) & 1;

        for (size_t e = 16 * s; e < 16 * s + 16; e++) {
            const int q = four_bits(block->qs, e) | two_bits(block->qh, e) << 4;

            out[e] = scale * (float)(dequant_iq6_k_values[q] + shift);
        }
    }
}

static inline void iq2_ks_block(const struct dequant_iq2_ks *restrict block, struct dequant_row row,
                                float *restrict out)
{
    const float d = dequant_f16_row_scale(row);

    for (size_t b = 0; b < N_32; b++) {
        const int high = (block->extra >> (8 + b)) & 1;
        const float scale = d * (float)((nibble(block->scales, b) | high << 4) - 16);
        const int8_t *values = dequant_iq2_k_values[(block->extra >> b) & 1];

        for (size_t e = 32 * b; e < 32 * b + 32; e++)
            out[e] = scale * (float)values[two_bits(block->qs, e)];
    }
}

static inline void iq3_ks_block(const struct dequant_iq3_ks *restrict block, struct dequant_row row,
                                float *restrict out)
{
    const float d = dequant_f16_row_scale(row);

    for (size_t b = 0; b < N_32; b++) {
        const int high = (block->extra >> b) & 1;
        const float scale = d * (float)((dequant_far_nibble(block->scales, b) | high << 4) - 16);
        const int8_t *values = dequant_iq3_k_values[(block->extra >> (8 + b)) & 1];

        for (size_t e = 32 * b; e < 32 * b + 32; e++)
            out[e] = scale * (float)values[two_bits(block->qs, e) | one_bit(block->qh, e) << 2];
    }
}

static inline void iq4_kss_block(const struct dequant_iq4_kss *restrict block,
                                 struct dequant_row row, float *restrict out)
{
    const float d = dequant_f32_row_scale(row);

    for (size_t b = 0; b < N_32; b++) {
        uint8_t scale = 0;

        for (size_t i = 0; i < 8; i++)
            scale |= (uint8_t)((block->words[b][i] & 1) << i);
        for (size_t i = 0; i < 16; i++) {
            const unsigned w = block->words[b][i / 2] & 0xfffe;
            const unsigned both = ((w ^ w >> 1) >> (8 * (i % 2))) & 255;
            const float product = d * (float)dequant_ks_scale(scale);
            const int shift = dequant_ks_shift(scale);

            out[32 * b + i] = product * (float)(dequant_iq4_values[both & 15] + shift);
            out[32 * b + i + 16] = product * (float)(dequant_iq4_values[both >> 4] + shift);
        }
    }
}

static inline void iq5_ks_block(const struct dequant_iq5_ks *restrict block, struct dequant_row row,
                                float *restrict out)
{
    const float d = dequant_f32_row_scale(row);

    for (size_t b = 0; b < N_32; b++) {
        const float scale = d * (float)dequant_ks_scale(block->scales[b]);
        const int shift = 2 * (block->scales[b] & 1);

        for (size_t e = 32 * b; e < 32 * b + 32; e++) {
            const int q = four_bits(block->qs, e) | one_bit(block->qh, e) << 4;

            out[e] = scale * (float)(dequant_iq5_k_values[q] + shift);
        }
    }
}

static inline void iq2_kl_block(const struct dequant_iq2_kl *restrict block, struct dequant_row row,
                                float *restrict out)
{
    const float d = dequant_f16_row_scale(row);

    for (size_t b = 0; b < N_32; b++) {
        const int high = (block->scales_high >> (2 * b)) & 3;
        const float scale =
            d * (float)((dequant_far_nibble(block->scales_low, b) | high << 4) - 32);

        for (size_t i = 0; i < 16; i++) {
            const int low = (block->qs[b / 2 * 16 + i] >> (4 * (b % 2))) & 15;
            const int q = low | ((block->qh[i] >> b) & 1) << 4;

            out[32 * b + 2 * i] = scale * (float)dequant_iq2_kl_values[0][q];
            out[32 * b + 2 * i + 1] = scale * (float)dequant_iq2_kl_values[1][q];
        }
    }
}

DEQUANT_DEFINE_DECODER(iq2_k, DEQUANT_SUPERBLOCK)
DEQUANT_DEFINE_DECODER_OF(old_iq2_k, iq2_k, DEQUANT_SUPERBLOCK)
DEQUANT_DEFINE_DECODER(iq3_k, DEQUANT_SUPERBLOCK)
DEQUANT_DEFINE_DECODER(iq4_k, DEQUANT_SUPERBLOCK)
DEQUANT_DEFINE_DECODER(iq5_k, DEQUANT_SUPERBLOCK)
DEQUANT_DEFINE_DECODER(iq6_k, DEQUANT_SUPERBLOCK)
DEQUANT_DEFINE_ROW_DECODER(iq2_ks, DEQUANT_SUPERBLOCK)
DEQUANT_DEFINE_ROW_DECODER(iq3_ks, DEQUANT_SUPERBLOCK)
DEQUANT_DEFINE_ROW_DECODER(iq4_kss, DEQUANT_SUPERBLOCK)
DEQUANT_DEFINE_ROW_DECODER(iq5_ks, DEQUANT_SUPERBLOCK)
DEQUANT_DEFINE_ROW_DECODER(iq2_kl, DEQUANT_SUPERBLOCK)
