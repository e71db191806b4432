/* Finds blocks whose scales are broken, or lie at the limits of their number format. */
#include "dequant/ik_row_blocks.h"
#include "dequant/iq_blocks.h"
#include "dequant/slots.h"

#include <string.h>

/* Infinity, NaN, the largest number, or a subnormal one, which has lost bits. Zero is exact. */
static bool is_f16_at_limit(uint16_t bits)
{
    const unsigned magnitude = bits & 0x7fff;

    return magnitude >= 0x7bff || (magnitude > 0 && magnitude < 0x0400);
}

bool dequant_f16_at_limit(const struct dequant_type *type, const void *block)
{
    const uint8_t *scales = (const uint8_t *)block + type->f16_offset;
    bool is_at_limit = false;

    for (size_t i = 0; i < type->n_f16; i++) {
        uint16_t bits;

        memcpy(&bits, scales + i * sizeof bits, sizeof bits);
        is_at_limit |= is_f16_at_limit(bits);
    }
    return is_at_limit;
}

bool dequant_iq1_m_at_limit(const struct dequant_type *type, const void *block)
{
    const struct dequant_iq1_m *it = block;
    unsigned d = 0;

    for (unsigned w = 0; w < 4; w++)
        d |= (unsigned)(it->scales[w][1] >> 4) << (4 * w);
    return is_f16_at_limit((uint16_t)d);
}

/* A power of two from 2^-127 to 2^127; 255 is NaN. A block of zeros has 2^-127, which is exact. */
bool dequant_mxfp4_at_limit(const struct dequant_type *type, const void *block)
{
    static const uint8_t zeros[DEQUANT_BLOCK / 2];
    const struct dequant_mxfp4 *it = block;

    return it->e >= 254 || (it->e == 0 && memcmp(it->qs, zeros, sizeof zeros) != 0);
}

/* ue4m3: below 8 subnormal, 126 is 448, the largest number, 127 is NaN. */
bool dequant_nvfp4_at_limit(const struct dequant_type *type, const void *block)
{
    const struct dequant_nvfp4 *it = block;
    bool is_at_limit = false;

    for (size_t s = 0; s < DEQUANT_NVFP4_BLOCK / 16; s++) {
        const unsigned bits = it->scales[s] & 0x7f;

        is_at_limit |= bits >= 126 || (bits > 0 && bits < 8);
    }
    return is_at_limit;
}

/* ---- 4-bit floats ---- */

const int8_t dequant_doubled_e2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

bool dequant_mxfp4_has_nan_scale(const void *block, uint32_t index)
{
    const struct dequant_mxfp4 *mxfp4 = block;

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

    for (size_t s = 0; s < DEQUANT_NVFP4_BLOCK / 16; s++)
        is_nan |= (nvfp4->scales[s] & 0x7f) == 0x7f;
    return is_nan;
}
