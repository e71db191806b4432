/* Decoders of the types of ik_llama.cpp. Layouts: dequant/ik_blocks.h. */
#include "dequant/ik_blocks.h"
#include "dequant/iq_grids.h"
#include "dequant/slots.h"

/* 32 elements whose low and high nibbles are 16 columns apart. */
static inline void put_halves(const uint8_t qs[restrict 16], float scale, int shift,
                              float *restrict out)
{
    for (size_t i = 0; i < 16; i++) {
        out[i] = scale * (float)(dequant_iq4_values[qs[i] & 15] + shift);
        out[i + 16] = scale * (float)(dequant_iq4_values[qs[i] >> 4] + shift);
    }
}

/* 32 elements of row k. */
static inline void put_r4(const struct dequant_r4_nibbles *restrict qs, size_t k, float scale,
                          int shift, float *restrict out)
{
    static const size_t starts[4] = {0, 16, 4, 20};

    for (size_t l = 0; l < 4; l++) {
        for (size_t i = 0; i < 4; i++) {
            const uint8_t q = qs->bytes[l][k][i];

            out[starts[l] + i] = scale * (float)(dequant_iq4_values[q & 15] + shift);
            out[starts[l] + 8 + i] = scale * (float)(dequant_iq4_values[q >> 4] + shift);
        }
    }
}

static inline void iq4_ks_block(const struct dequant_iq4_ks *restrict block, struct dequant_row row,
                                float *restrict out)
{
    const float d = dequant_f32_row_scale(row);

    for (size_t s = 0; s < DEQUANT_SUPERBLOCK / 32; s++) {
        const uint8_t scale = block->scales[s];

        put_halves(block->qs[s], d * (float)dequant_ks_scale(scale), dequant_ks_shift(scale),
                   out + 32 * s);
    }
}

static inline void iq4_ks_r4_block(const struct dequant_iq4_ks_r4 *restrict block,
                                   struct dequant_row row, float *restrict out)
{
    const float d = dequant_f32_row_scale(row);

    for (size_t s = 0; s < DEQUANT_SUPERBLOCK / 32; s++) {
        const uint8_t scale = block->scales[s][row.index];

        put_r4(&block->qs[s], row.index, d * (float)dequant_ks_scale(scale),
               dequant_ks_shift(scale), out + 32 * s);
    }
}

DEQUANT_DEFINE_ROW_DECODER(iq4_ks, DEQUANT_SUPERBLOCK)
DEQUANT_DEFINE_ROW_DECODER(iq4_ks_r4, DEQUANT_SUPERBLOCK)
