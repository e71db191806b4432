/* Kernels of the types with interleaved rows. */
#include "dequant/deinterleave_ik.h"
#include "dequant/iq_grids.h"
#include "dequant/kernels/simd.h"

/* DEQUANT_SET is expanded before it becomes part of names. */
#define DEFINE_KERNELS(set)                                                                        \
    DEQUANT_INTERLEAVED(DEQUANT_DEFINE_INTERLEAVED, set)                                           \
    DEQUANT_INTERLEAVED_IK(DEQUANT_DEFINE_INTERLEAVED, set)
DEFINE_KERNELS(DEQUANT_SET)

/* Write q * d + m of 16 elements. */
INLINE void put_16(words codes, float d, float m, float *out)
{
    simd_bytes q;

    memcpy(&q, &codes, sizeof q);
    simd_put_plus(out, q, d, m);
}

INLINE void q5_0_r4_kernel(const struct dequant_q5_0_r4 *block, struct dequant_row row, float *out)
{
    const float d = simd_f16(block->d[row.index]);

    for (size_t h = 0; h < 2; h++)
        put_16(get_q5_0(block, row.index, h), d, -16 * d, out + 16 * h);
}

INLINE void q6_0_r4_kernel(const struct dequant_q6_0_r4 *block, struct dequant_row row, float *out)
{
    const float d = simd_f16(block->d[row.index]);

    for (size_t h = 0; h < 2; h++)
        put_16(get_q6_0(block, row.index, h), d, -32 * d, out + 16 * h);
}

/* Four blocks at a time: a float is a BF16 number above two zero bytes. */
void SIMD_NAME(bf16_r16)(const void *restrict blocks, float *restrict out, size_t n_blocks,
                         struct dequant_row row)
{
    const struct dequant_bf16_r16 *block = blocks;

    for (; n_blocks >= 4; n_blocks -= 4, block += 4, out += 8) {
        const simd_bytes pairs =
            simd_four(simd_u32(block[0].bits[row.index]), simd_u32(block[1].bits[row.index]),
                      simd_u32(block[2].bits[row.index]), simd_u32(block[3].bits[row.index]));

        simd_store_bytes(out, simd_zip_low_2(simd_all(0), pairs));
        simd_store_bytes(out + 4, simd_zip_high_2(simd_all(0), pairs));
    }
    for (; n_blocks > 0; n_blocks--, block++, out += 2) {
        out[0] = dequant_bf16_to_f32(block->bits[row.index][0]);
        out[1] = dequant_bf16_to_f32(block->bits[row.index][1]);
    }
}

/* Two runs of an IQ1 type. */
INLINE void put_runs(float *out, size_t a, size_t b, simd_floats shift, float scale)
{
    const simd_floats q = simd_floats_of(simd_two(dequant_iq1_grid[a], dequant_iq1_grid[b]));

    simd_store(out, simd_mul(simd_all_floats(scale), simd_add_floats(q, shift)));
}

INLINE float eighth(unsigned is_minus)
{
    return is_minus ? -0.125F : 0.125F;
}

INLINE void iq1_s_r4_kernel(const struct dequant_iq1_s_r4 *block, struct dequant_row row,
                            float *out)
{
    const unsigned high = block->qh[row.index];
    const float scale = dequant_f16_row_scale(row) * (float)(2 * (high >> 12 & 7) + 1);
    const simd_floats shift = simd_all_floats(eighth(high >> 15));

    for (size_t i = 0; i < 4; i += 2)
        put_runs(out + 8 * i, block->qs[i][row.index] | (high >> 3 * i & 7) << 8,
                 block->qs[i + 1][row.index] | (high >> 3 * (i + 1) & 7) << 8, shift, scale);
}

INLINE void iq1_m_r4_kernel(const struct dequant_iq1_m_r4 *block, struct dequant_row row,
                            float *out)
{
    const float d = dequant_f16_row_scale(row);

    for (size_t h = 0; h < 2; h++) {
        const unsigned high = block->qh[h][row.index];
        const unsigned scale = block->scales[row.index] >> 4 * h & 15;

        put_runs(out + 16 * h, block->qs[2 * h][row.index] | (high & 7) << 8,
                 block->qs[2 * h + 1][row.index] | (high >> 4 & 7) << 8,
                 simd_halves(eighth(high & 8), eighth(high & 128)), d * (float)scale);
    }
}

SIMD_DEFINE_ROWS(q5_0_r4, DEQUANT_BLOCK)
SIMD_DEFINE_ROWS(q6_0_r4, DEQUANT_BLOCK)
SIMD_DEFINE_ROWS(iq1_s_r4, DEQUANT_BLOCK)
SIMD_DEFINE_ROWS(iq1_m_r4, DEQUANT_BLOCK)
