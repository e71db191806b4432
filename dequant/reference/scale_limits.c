/* Finds blocks whose scales lie at the limits of their number format. Layouts: dequant/blocks.h. */
#include "dequant/blocks.h"
#include "dequant/fork_blocks.h"
#include "dequant/ik_k_blocks.h"
#include "dequant/iq_blocks.h"
#include "dequant/slots.h"

#include <string.h>

/* Infinity, NaN, the largest number, or a subnormal one, which has lost bits. Zero is exact. */
static bool is_f16_at_limit(uint16_t bits)
{
    const unsigned magnitude = bits & 0x7fff;

    return magnitude >= 0x7bff || (magnitude > 0 && magnitude < 0x0400);
}

/* A type with one f16 scale. */
#define DEFINE_D(type)                                                                             \
    bool dequant_##type##_is_scale_at_limit(const void *block)                                     \
    {                                                                                              \
        return is_f16_at_limit(((const struct dequant_##type *)block)->d);                         \
    }

/* A type with an f16 scale and an f16 offset. */
#define DEFINE_D_M(type)                                                                           \
    bool dequant_##type##_is_scale_at_limit(const void *block)                                     \
    {                                                                                              \
        const struct dequant_##type *it = block;                                                   \
                                                                                                   \
        return is_f16_at_limit(it->d) || is_f16_at_limit(it->m);                                   \
    }

DEFINE_D(q1_0)
DEFINE_D(q2_0)
DEFINE_D(q1_0_g32)
DEFINE_D(pq2_0)
DEFINE_D(ptq1_0)
DEFINE_D(q4_0)
DEFINE_D_M(q4_1)
DEFINE_D(q5_0)
DEFINE_D_M(q5_1)
DEFINE_D(q8_0)
DEFINE_D(q8_1)
DEFINE_D_M(q2_k)
DEFINE_D(q3_k)
DEFINE_D_M(q4_k)
DEFINE_D_M(q5_k)
DEFINE_D(q6_k)
DEFINE_D(iq1_s)
DEFINE_D(iq2_xxs)
DEFINE_D(iq2_xs)
DEFINE_D(iq2_s)
DEFINE_D(iq3_xxs)
DEFINE_D(iq3_s)
DEFINE_D(iq4_nl)
DEFINE_D(iq4_xs)
DEFINE_D(tq1_0)
DEFINE_D(tq2_0)
DEFINE_D(iq2_k)
DEFINE_D(iq3_k)
DEFINE_D(iq4_k)
DEFINE_D(iq5_k)
DEFINE_D(iq6_k)
DEFINE_D(q6_0)

bool dequant_iq1_m_is_scale_at_limit(const void *block)
{
    const struct dequant_iq1_m *it = block;
    unsigned d = 0;

    for (unsigned w = 0; w < 4; w++)
        d |= (unsigned)(it->scales[w][1] >> 4) << (4 * w);
    return is_f16_at_limit((uint16_t)d);
}

/* A power of two from 2^-127 to 2^127; 255 is NaN. A block of zeros has 2^-127, which is exact. */
bool dequant_mxfp4_is_scale_at_limit(const void *block)
{
    static const uint8_t zeros[DEQUANT_BLOCK / 2];
    const struct dequant_mxfp4 *it = block;

    return it->e >= 254 || (it->e == 0 && memcmp(it->qs, zeros, sizeof zeros) != 0);
}

/* ue4m3: below 8 subnormal, 126 is 448, the largest number, 127 is NaN. */
bool dequant_nvfp4_is_scale_at_limit(const void *block)
{
    const struct dequant_nvfp4 *it = block;
    bool is_at_limit = false;

    for (size_t s = 0; s < DEQUANT_NVFP4_BLOCK / 16; s++) {
        const unsigned bits = it->scales[s] & 0x7f;

        is_at_limit |= bits >= 126 || (bits > 0 && bits < 8);
    }
    return is_at_limit;
}
