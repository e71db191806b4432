/* Kernels of the IQ types. */
#include "dequant/iq_blocks.h"
#include "dequant/iq_grids.h"
#include "dequant/kernels/simd.h"

/* Write q * scale, negated where a bit of `signs` is set. No q is 0, so no zero loses its sign. */
INLINE void put_signed(float *out, simd_bytes q, unsigned signs, float scale)
{
    simd_put(out, simd_negate_where(q, (uint16_t)signs), scale);
}

/* The 16 signs of two runs, from seven bits each. */
INLINE unsigned even_signs_2(unsigned signs)
{
    return dequant_even_signs(signs) | dequant_even_signs(signs >> 7) << 8;
}

SIMD_DECODER(iq2_xxs, DEQUANT_SUPERBLOCK, simd_is_finite(block->d))
{
    const float d = simd_f16(block->d);
    const uint64_t *grid = dequant_iq2_xxs_grid;

    for (size_t g = 0; g < DEQUANT_N_32; g++, out += 32) {
        const uint64_t group = simd_u64(block->groups[g]);
        const uint32_t signs = (uint32_t)(group >> 32);
        const float scale = d * (0.5F + (float)(signs >> 28)) * 0.25F;

        put_signed(out, simd_two(grid[group & 255], grid[(group >> 8) & 255]), even_signs_2(signs),
                   scale);
        put_signed(out + 16, simd_two(grid[(group >> 16) & 255], grid[(group >> 24) & 255]),
                   even_signs_2(signs >> 14), scale);
    }
}

/* d * (scale + 1/2) / 4 for the 16 scales of an IQ2_XS or IQ2_S block. */
INLINE void scale_iq2(const uint8_t bytes[8], float d, float scales[16])
{
    const simd_floats q = simd_floats_of(simd_nibbles(bytes));
    const simd_floats sum = simd_add_floats(simd_all_floats(0.5F), q);

    simd_store(scales, simd_mul(simd_mul(simd_all_floats(d), sum), simd_all_floats(0.25F)));
}

SIMD_DECODER(iq2_xs, DEQUANT_SUPERBLOCK, simd_is_finite(block->d))
{
    const uint64_t *grid = dequant_iq2_xs_grid;
    float scales[DEQUANT_N_16];

    scale_iq2(block->scales, simd_f16(block->d), scales);
    for (size_t s = 0; s < DEQUANT_N_16; s++) {
        const unsigned a = block->runs[2 * s], b = block->runs[2 * s + 1];

        put_signed(out + 16 * s, simd_two(grid[a & 511], grid[b & 511]),
                   dequant_even_signs(a >> 9) | dequant_even_signs(b >> 9) << 8, scales[s]);
    }
}

SIMD_DECODER(iq2_s, DEQUANT_SUPERBLOCK, simd_is_finite(block->d))
{
    const uint64_t *grid = dequant_iq2_s_grid;
    float scales[DEQUANT_N_16];

    scale_iq2(block->scales, simd_f16(block->d), scales);
    for (size_t s = 0; s < DEQUANT_N_16; s++) {
        const unsigned high = (unsigned)block->qh[s / 2] << 8 >> (4 * (s % 2));
        const unsigned a = block->qs[2 * s] | (high & 0x300);
        const unsigned b = block->qs[2 * s + 1] | ((high >> 2) & 0x300);

        put_signed(out + 16 * s, simd_two(grid[a], grid[b]), simd_u16(block->signs + 2 * s),
                   scales[s]);
    }
}

SIMD_DECODER(iq3_xxs, DEQUANT_SUPERBLOCK, simd_is_finite(block->d))
{
    const float d = simd_f16(block->d);
    const uint32_t *grid = dequant_iq3_xxs_grid;

    for (size_t s = 0; s < DEQUANT_N_16; s++) {
        const uint32_t group = simd_u32(block->signs[s / 2]);
        const float scale = d * (0.5F + (float)(group >> 28)) * 0.5F;
        const uint8_t *q = block->qs + 4 * s;

        put_signed(out + 16 * s, simd_four(grid[q[0]], grid[q[1]], grid[q[2]], grid[q[3]]),
                   even_signs_2(group >> (14 * (s % 2))), scale);
    }
}

SIMD_DECODER(iq3_s, DEQUANT_SUPERBLOCK, simd_is_finite(block->d))
{
    const float d = simd_f16(block->d);
    const uint32_t *grid = dequant_iq3_s_grid;

    for (size_t s = 0; s < DEQUANT_N_16; s++) {
        const int q_scale = (block->scales[s / 4] >> (4 * (s / 2 % 2))) & 15;
        const float scale = d * (float)(2 * q_scale + 1);
        const unsigned high = (unsigned)block->qh[s / 2] << 8 >> (4 * (s % 2));
        const uint8_t *q = block->qs + 4 * s;
        const simd_bytes entries =
            simd_four(grid[q[0] | (high & 256)], grid[q[1] | ((high >> 1) & 256)],
                      grid[q[2] | ((high >> 2) & 256)], grid[q[3] | ((high >> 3) & 256)]);

        put_signed(out + 16 * s, entries, simd_u16(block->signs + 2 * s), scale);
    }
}

/* 16 elements of an IQ1 type; each run of eight has its own shift. */
INLINE void put_shifted(float *out, simd_bytes q, simd_floats shift, float scale)
{
    const simd_floats sum = simd_add_floats(simd_floats_of(q), shift);

    simd_store(out, simd_mul(simd_all_floats(scale), sum));
}

/* An eighth, negative where `minus` is not zero, for the lower and the upper eight. */
INLINE simd_floats shifts(unsigned low_minus, unsigned high_minus)
{
    return simd_halves(low_minus ? -0.125F : 0.125F, high_minus ? -0.125F : 0.125F);
}

SIMD_DECODER(iq1_s, DEQUANT_SUPERBLOCK, true)
{
    const float d = simd_f16(block->d);
    const uint64_t *grid = dequant_iq1_grid;

    for (size_t g = 0; g < DEQUANT_N_32; g++) {
        const unsigned high = block->qh[g];
        const float scale = d * (float)(2 * ((high >> 12) & 7) + 1);
        const simd_floats shift = simd_all_floats(high >> 15 ? -0.125F : 0.125F);
        const uint8_t *q = block->qs + 4 * g;

        put_shifted(out + 32 * g,
                    simd_two(grid[q[0] | (high << 8 & 0x700)], grid[q[1] | (high << 5 & 0x700)]),
                    shift, scale);
        put_shifted(out + 32 * g + 16,
                    simd_two(grid[q[2] | (high << 2 & 0x700)], grid[q[3] | (high >> 1 & 0x700)]),
                    shift, scale);
    }
}

/* The f16 scale of an IQ1_M block, from its four parts. */
INLINE uint16_t iq1_m_d(const struct dequant_iq1_m *block)
{
    const uint64_t words = simd_u64(block->scales);

    return (uint16_t)((words >> 12 & 0x000f) | (words >> 24 & 0x00f0) | (words >> 36 & 0x0f00) |
                      (words >> 48 & 0xf000));
}

SIMD_DECODER(iq1_m, DEQUANT_SUPERBLOCK, true)
{
    const uint64_t words = simd_u64(block->scales);
    const float d = simd_f16(iq1_m_d(block));
    const uint64_t *grid = dequant_iq1_grid;

    for (size_t s = 0; s < DEQUANT_N_16; s++) {
        const unsigned high = block->qh[s];
        const unsigned q_scale = (words >> (16 * (s / 4) + 3 * (s % 4))) & 7;
        const unsigned a = block->qs[2 * s] | (high << 8 & 0x700);
        const unsigned b = block->qs[2 * s + 1] | (high << 4 & 0x700);

        put_shifted(out + 16 * s, simd_two(grid[a], grid[b]), shifts(high & 8, high & 128),
                    d * (float)(2 * q_scale + 1));
    }
}

SIMD_DECODER(iq4_nl, DEQUANT_BLOCK, true)
{
    const float d = simd_f16(block->d);
    const simd_bytes table = simd_load(dequant_iq4_values), q = simd_load(block->qs);

    simd_put(out, simd_look_up(table, simd_low_nibbles(q)), d);
    simd_put(out + 16, simd_look_up(table, simd_high_nibbles(q)), d);
}

SIMD_DECODER(iq4_xs, DEQUANT_SUPERBLOCK, true)
{
    const float d = simd_f16(block->d);
    const simd_bytes table = simd_load(dequant_iq4_values);
    const uint32_t scales_low = simd_u32(block->scales_low);
    const unsigned scales_high = block->scales_high;

    for (size_t s = 0; s < DEQUANT_N_32; s++) {
        const int low = (int)(scales_low >> (4 * s)) & 15;
        const int high = (int)(scales_high >> (2 * s)) & 3;
        const float scale = d * (float)((high << 4 | low) - 32);
        const simd_bytes q = simd_load(block->qs[s]);

        simd_put(out + 32 * s, simd_look_up(table, simd_low_nibbles(q)), scale);
        simd_put(out + 32 * s + 16, simd_look_up(table, simd_high_nibbles(q)), scale);
    }
}
