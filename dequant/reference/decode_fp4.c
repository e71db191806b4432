/* Decoders of the types made of 4-bit floats. Layouts: dequant/blocks.h. */
#include "dequant/blocks.h"
#include "dequant/ik_row_blocks.h"
#include "dequant/slots.h"
#include "dequant/small_floats.h"

const int8_t dequant_doubled_e2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

static inline void mxfp4_block(const struct dequant_mxfp4 *restrict block, float *restrict out)
{
    float d = dequant_half_e8m0_to_f32(block->e);

    for (size_t i = 0; i < DEQUANT_BLOCK / 2; i++) {
        out[i] = (float)dequant_doubled_e2m1[block->qs[i] & 15] * d;
        out[i + 16] = (float)dequant_doubled_e2m1[block->qs[i] >> 4] * d;
    }
}

static inline void nvfp4_block(const struct dequant_nvfp4 *restrict block, float *restrict out)
{
    for (size_t s = 0; s < DEQUANT_NVFP4_BLOCK / 16; s++) {
        float d = dequant_half_ue4m3_to_f32(block->scales[s]);

        for (size_t i = 0; i < 8; i++) {
            out[16 * s + i] = (float)dequant_doubled_e2m1[block->qs[s][i] & 15] * d;
            out[16 * s + i + 8] = (float)dequant_doubled_e2m1[block->qs[s][i] >> 4] * d;
        }
    }
}

DEQUANT_DEFINE_DECODER(mxfp4, DEQUANT_BLOCK)
DEQUANT_DEFINE_DECODER(nvfp4, DEQUANT_NVFP4_BLOCK)

bool dequant_mxfp4_has_nan_scale(const void *block, uint32_t index)
{
    const struct dequant_mxfp4 *mxfp4 = block;

    (void)index;
    return mxfp4->e == 255;
}

bool dequant_mxfp4_r8_has_nan_scale(const void *block, uint32_t index)
{
    const struct dequant_mxfp4_r8 *mxfp4 = block;

    return mxfp4->e[index] == 255;
}

bool dequant_nvfp4_has_nan_scale(const void *block, uint32_t index)
{
    const struct dequant_nvfp4 *nvfp4 = block;
    bool is_nan = false;

    (void)index;
    for (size_t s = 0; s < DEQUANT_NVFP4_BLOCK / 16; s++)
        is_nan |= (nvfp4->scales[s] & 0x7f) == 0x7f;
    return is_nan;
}
