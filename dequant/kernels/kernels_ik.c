/* Kernels of the types of ik_llama.cpp. */
#include "dequant/ik_blocks.h"
#include "dequant/iq_grids.h"
#include "dequant/kernels/simd.h"

/* dequant_iq4_values, shifted if the flag of an IQ4_KS scale is set. */
INLINE simd_bytes shifted_values(uint8_t scale)
{
    return simd_load(dequant_iq4_values) + simd_all(dequant_ks_shift(scale));
}

/* 32 elements of row k. */
INLINE void put_r4(float *out, const struct dequant_r4_nibbles *qs, size_t k, simd_bytes table,
                   float scale)
{
    const simd_bytes q = simd_four(simd_u32(qs->bytes[0][k]), simd_u32(qs->bytes[2][k]),
                                   simd_u32(qs->bytes[1][k]), simd_u32(qs->bytes[3][k]));
    const simd_bytes low = simd_look_up(table, simd_low_nibbles(q));
    const simd_bytes high = simd_look_up(table, simd_high_nibbles(q));

    simd_put(out, simd_zip_low_8(low, high), scale);
    simd_put(out + 16, simd_zip_high_8(low, high), scale);
}

SIMD_DECODER(iq4_ks, DEQUANT_SUPERBLOCK, true)
{
    const float d = dequant_f32_row_scale(row);

    for (size_t s = 0; s < DEQUANT_SUPERBLOCK / 32; s++, out += 32) {
        const simd_bytes table = shifted_values(block->scales[s]), q = simd_load(block->qs[s]);
        const float scale = d * (float)dequant_ks_scale(block->scales[s]);

        simd_put(out, simd_look_up(table, simd_low_nibbles(q)), scale);
        simd_put(out + 16, simd_look_up(table, simd_high_nibbles(q)), scale);
    }
}

SIMD_DECODER(iq4_nl_r4, DEQUANT_BLOCK, true)
{
    put_r4(out, &block->qs, row.index, simd_load(dequant_iq4_values),
           simd_f16(block->d[row.index]));
}

SIMD_DECODER(iq4_ks_r4, DEQUANT_SUPERBLOCK, true)
{
    const float d = dequant_f32_row_scale(row);

    for (size_t s = 0; s < DEQUANT_SUPERBLOCK / 32; s++, out += 32) {
        const uint8_t scale = block->scales[s][row.index];

        put_r4(out, &block->qs[s], row.index, shifted_values(scale),
               d * (float)dequant_ks_scale(scale));
    }
}
