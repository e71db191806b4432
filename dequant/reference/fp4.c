/* Values and broken scales of the types made of 4-bit floats. */
#include "dequant/blocks.h"
#include "dequant/ik_row_blocks.h"
#include "dequant/slots.h"

const int8_t dequant_doubled_e2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

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
