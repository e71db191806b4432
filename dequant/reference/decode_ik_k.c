/* The decoder of IQ2_K until 2024-10-13, with the same blocks. Layout: dequant/ik_k_blocks.h. */
#include "dequant/ik_k_blocks.h"
#include "dequant/ik_tables.h"
#include "dequant/slots.h"

static inline void old_iq2_k_block(const struct dequant_iq2_k *restrict block, float *restrict out)
{
    const float d = dequant_f16_to_f32(block->d);

    for (size_t e = 0; e < DEQUANT_SUPERBLOCK; e++) {
        const size_t s = e / 16;
        const int nibble = (block->scales[s / 2] >> (4 * (s % 2))) & 15;
        const int q = (block->qs[e / 128 * 32 + e % 32] >> (2 * (e % 128 / 32))) & 3;

        out[e] =
            d * (float)(2 * nibble - 15) * (float)dequant_iq2_k_values[(block->flags >> s) & 1][q];
    }
}

DEQUANT_DEFINE_DECODER_OF(old_iq2_k, iq2_k, DEQUANT_SUPERBLOCK)
