/* Decoders of the IQ types. Layouts: dequant/iq_blocks.h. */
#include <stdbool.h>

#include "dequant/slots.h"
#include "dequant/iq_blocks.h"
#include "dequant/iq_grids.h"
#include "dequant/small_floats.h"

/*
 * A run of `n` elements: the bytes of a grid entry times the scale; element i is negated where bit
 * i of `signs` is set. Flipping the sign bit of the product is exact and needs no branch.
 */
static inline void put_run(const void *entry, size_t n, unsigned signs, float scale,
                           float *restrict out)
{
    const uint8_t *values = entry;

    for (size_t i = 0; i < n; i++) {
        uint32_t bits = dequant_bits_of_float(scale * (float)values[i]);

        out[i] = dequant_float_of_bits(bits ^ (uint32_t)(signs >> i) << 31);
    }
}

static inline void put_4(const uint32_t *entry, unsigned signs, float scale, float *restrict out)
{
    put_run(entry, 4, signs, scale, out);
}

static inline void put_8(const uint64_t *entry, unsigned signs, float scale, float *restrict out)
{
    put_run(entry, 8, signs, scale, out);
}

static inline uint32_t load_le32(const uint8_t *bytes)
{
    uint32_t value;

    memcpy(&value, bytes, sizeof(value));
    return value;
}

static inline void iq2_xxs_block(const struct dequant_iq2_xxs *restrict block, float *restrict out)
{
    float d = dequant_f16_to_f32(block->d);

    for (size_t g = 0; g < DEQUANT_SUPERBLOCK / 32; g++) {
        const uint16_t q[2] = {block->groups[g][0], block->groups[g][1]};
        uint32_t signs = block->groups[g][2] | (uint32_t)block->groups[g][3] << 16;
        float scale = d * (0.5F + (float)(signs >> 28)) * 0.25F;

        for (size_t k = 0; k < 4; k++) {
            size_t index = (q[k / 2] >> (8 * (k % 2))) & 255;

            put_8(&dequant_iq2_xxs_grid[index], dequant_even_signs(signs >> (7 * k)), scale, out);
            out += 8;
        }
    }
}

/* Scale `s` of 4 bits, two to a byte, of an IQ2_XS or IQ2_S block. */
static inline float iq2_scale(float d, const uint8_t *scales, size_t s)
{
    return d * (0.5F + (float)((scales[s / 2] >> (4 * (s % 2))) & 15)) * 0.25F;
}

static inline void iq2_xs_block(const struct dequant_iq2_xs *restrict block, float *restrict out)
{
    float d = dequant_f16_to_f32(block->d);

    for (size_t k = 0; k < DEQUANT_SUPERBLOCK / 8; k++) {
        unsigned run = block->runs[k];
        float scale = iq2_scale(d, block->scales, k / 2);

        put_8(&dequant_iq2_xs_grid[run & 511], dequant_even_signs(run >> 9), scale, out + 8 * k);
    }
}

static inline void iq2_s_block(const struct dequant_iq2_s *restrict block, float *restrict out)
{
    float d = dequant_f16_to_f32(block->d);

    for (size_t k = 0; k < DEQUANT_SUPERBLOCK / 8; k++) {
        size_t high = (block->qh[k / 4] >> (2 * (k % 4))) & 3;
        float scale = iq2_scale(d, block->scales, k / 2);

        put_8(&dequant_iq2_s_grid[high << 8 | block->qs[k]], block->signs[k], scale, out + 8 * k);
    }
}

static inline void iq3_xxs_block(const struct dequant_iq3_xxs *restrict block, float *restrict out)
{
    float d = dequant_f16_to_f32(block->d);

    for (size_t g = 0; g < DEQUANT_SUPERBLOCK / 32; g++) {
        uint32_t group = load_le32(block->signs[g]);
        float scale = d * (0.5F + (float)(group >> 28)) * 0.5F;

        for (size_t n = 4 * g; n < 4 * g + 4; n++) {
            unsigned signs = dequant_even_signs(group >> (7 * (n % 4)));

            put_4(&dequant_iq3_xxs_grid[block->qs[2 * n]], signs, scale, out + 8 * n);
            put_4(&dequant_iq3_xxs_grid[block->qs[2 * n + 1]], signs >> 4, scale, out + 8 * n + 4);
        }
    }
}

static inline void iq3_s_block(const struct dequant_iq3_s *restrict block, float *restrict out)
{
    float d = dequant_f16_to_f32(block->d);

    for (size_t g = 0; g < DEQUANT_SUPERBLOCK / 32; g++) {
        int q_scale = (block->scales[g / 2] >> (4 * (g % 2))) & 15;
        float scale = d * (float)(2 * q_scale + 1);

        for (size_t k = 8 * g; k < 8 * g + 8; k++) {
            size_t high = (block->qh[g] >> (k % 8)) & 1;
            unsigned signs = (unsigned)block->signs[k / 2] >> (4 * (k % 2));

            put_4(&dequant_iq3_s_grid[high << 8 | block->qs[k]], signs, scale, out + 4 * k);
        }
    }
}

/* Eight elements of an IQ1 type: grid values -1, 0 and 1, shifted by an eighth. */
static inline void put_shifted(size_t index, bool minus, float scale, float *restrict out)
{
    const int8_t *values = (const int8_t *)&dequant_iq1_grid[index];
    float shift = minus ? -0.125F : 0.125F;

    for (size_t i = 0; i < 8; i++)
        out[i] = scale * ((float)values[i] + shift);
}

static inline void iq1_s_block(const struct dequant_iq1_s *restrict block, float *restrict out)
{
    float d = dequant_f16_to_f32(block->d);

    for (size_t k = 0; k < DEQUANT_SUPERBLOCK / 8; k++) {
        unsigned group = block->qh[k / 4];
        size_t high = (group >> (3 * (k % 4))) & 7;
        float scale = d * (float)(2 * ((group >> 12) & 7) + 1);

        put_shifted(high << 8 | block->qs[k], (group >> 15) != 0, scale, out + 8 * k);
    }
}

static inline void iq1_m_block(const struct dequant_iq1_m *restrict block, float *restrict out)
{
    unsigned words[4];
    unsigned d_bits = 0;

    for (size_t w = 0; w < 4; w++) {
        words[w] = block->scales[w][0] | (unsigned)block->scales[w][1] << 8;
        d_bits |= (words[w] >> 12) << (4 * w);
    }

    float d = dequant_f16_to_f32((uint16_t)d_bits);

    for (size_t k = 0; k < DEQUANT_SUPERBLOCK / 8; k++) {
        size_t s = k / 2;
        unsigned high = block->qh[s] >> (4 * (k % 2));
        float scale = d * (float)(2 * ((words[s / 4] >> (3 * (s % 4))) & 7) + 1);

        put_shifted((high & 7) << 8 | block->qs[k], (high & 8) != 0, scale, out + 8 * k);
    }
}

static inline void iq4_nl_block(const struct dequant_iq4_nl *restrict block, float *restrict out)
{
    float d = dequant_f16_to_f32(block->d);

    for (size_t i = 0; i < DEQUANT_BLOCK / 2; i++) {
        out[i] = d * (float)dequant_iq4_values[block->qs[i] & 15];
        out[i + 16] = d * (float)dequant_iq4_values[block->qs[i] >> 4];
    }
}

static inline void iq4_xs_block(const struct dequant_iq4_xs *restrict block, float *restrict out)
{
    float d = dequant_f16_to_f32(block->d);

    for (size_t s = 0; s < DEQUANT_SUPERBLOCK / 32; s++) {
        const uint8_t *q = block->qs[s];
        int low = (block->scales_low[s / 2] >> (4 * (s % 2))) & 15;
        int high = (block->scales_high >> (2 * s)) & 3;
        float scale = d * (float)((high << 4 | low) - 32);

        for (size_t i = 0; i < 16; i++) {
            out[32 * s + i] = scale * (float)dequant_iq4_values[q[i] & 15];
            out[32 * s + i + 16] = scale * (float)dequant_iq4_values[q[i] >> 4];
        }
    }
}

DEQUANT_DEFINE_DECODER(iq1_s, DEQUANT_SUPERBLOCK)
DEQUANT_DEFINE_DECODER(iq1_m, DEQUANT_SUPERBLOCK)
DEQUANT_DEFINE_DECODER(iq2_xxs, DEQUANT_SUPERBLOCK)
DEQUANT_DEFINE_DECODER(iq2_xs, DEQUANT_SUPERBLOCK)
DEQUANT_DEFINE_DECODER(iq2_s, DEQUANT_SUPERBLOCK)
DEQUANT_DEFINE_DECODER(iq3_xxs, DEQUANT_SUPERBLOCK)
DEQUANT_DEFINE_DECODER(iq3_s, DEQUANT_SUPERBLOCK)
DEQUANT_DEFINE_DECODER(iq4_nl, DEQUANT_BLOCK)
DEQUANT_DEFINE_DECODER(iq4_xs, DEQUANT_SUPERBLOCK)
