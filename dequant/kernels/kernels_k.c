/* Kernels of the K types. */
#include "dequant/blocks.h"
#include "dequant/kernels/simd.h"

SIMD_DECODER(q2_k, DEQUANT_SUPERBLOCK, simd_is_finite(block->d) && simd_is_finite(block->m))
{
    const simd_bytes both = simd_load(block->scales);
    float scales[DEQUANT_N_16], mins[DEQUANT_N_16];

    simd_put(scales, simd_low_nibbles(both), simd_f16(block->d));
    simd_put(mins, simd_high_nibbles(both), simd_f16(block->m));
    UNROLL
    for (size_t i = 0; i < 4; i++) {
        const simd_bytes q = simd_load(block->qs + 16 * i);

        UNROLL
        for (size_t k = 0; k < 4; k++) {
            const size_t s = 8 * (i / 2) + 2 * k + i % 2;

            simd_put_less(out + 16 * s, simd_bits(q, 2 * k, 2, 0), scales[s], mins[s]);
        }
    }
}

/* The 16 scales of a Q3_K block, -32 to 31. */
INLINE simd_bytes q3_k_scales(const struct dequant_q3_k *block)
{
    const simd_bytes low = simd_load_8(block->scales_low);
    const uint32_t high = simd_u32(block->scales_high);
    const simd_bytes high_bits = simd_four(high, high >> 2, high >> 4, high >> 6);
    const simd_bytes joined = simd_zip_low_8(simd_low_nibbles(low), simd_high_nibbles(low)) |
                              simd_shift_left(high_bits & 3, 4);

    return joined - 32;
}

SIMD_DECODER(q3_k, DEQUANT_SUPERBLOCK, true)
{
    const simd_bytes qh[2] = {simd_load(block->qh), simd_load(block->qh + 16)};
    float scales[DEQUANT_N_16];

    simd_put(scales, q3_k_scales(block), simd_f16(block->d));
    UNROLL
    for (size_t i = 0; i < 4; i++) {
        const simd_bytes q = simd_load(block->qs + 16 * i);

        UNROLL
        for (size_t k = 0; k < 4; k++) {
            const size_t s = 8 * (i / 2) + 2 * k + i % 2;
            const simd_bytes low = simd_bits(q, 2 * k, 2, 0);
            const simd_bytes high = simd_bits(qh[i % 2], s / 2, 1, 2);

            simd_put(out + 16 * s, (low | high) - 4, scales[s]);
        }
    }
}

/* d times the eight scales, in scales[0..7], and m times the eight minima, in mins[8..15]. */
INLINE void scale_k(const struct dequant_k_scales *k, float d, float m, float scales[restrict 16],
                    float mins[restrict 16])
{
    const uint32_t scale_bits = simd_u32(k->scales), min_bits = simd_u32(k->mins);
    const uint32_t low = simd_u32(k->low);
    const uint32_t six = 0x3f3f3f3f, four = 0x0f0f0f0f, two = 0x30303030;
    const simd_bytes both =
        simd_four(scale_bits & six, (low & four) | ((scale_bits >> 2) & two), min_bits & six,
                  ((low >> 4) & four) | ((min_bits >> 2) & two));

    simd_put(scales, both, d);
    simd_put(mins, both, m); /* only the second half is used */
}

SIMD_DECODER(q4_k, DEQUANT_SUPERBLOCK, simd_is_finite(block->d) && simd_is_finite(block->m))
{
    float scales[16], mins[16];

    scale_k(&block->scales, simd_f16(block->d), simd_f16(block->m), scales, mins);
    UNROLL
    for (size_t i = 0; i < 8; i++) {
        const simd_bytes q = simd_load(block->qs + 16 * i);
        const size_t s = i / 2 * 2;
        float *to = out + 32 * s + 16 * (i % 2);

        simd_put_less(to, simd_low_nibbles(q), scales[s], mins[8 + s]);
        simd_put_less(to + 32, simd_high_nibbles(q), scales[s + 1], mins[8 + s + 1]);
    }
}

SIMD_DECODER(q5_k, DEQUANT_SUPERBLOCK, simd_is_finite(block->d) && simd_is_finite(block->m))
{
    const simd_bytes qh[2] = {simd_load(block->qh), simd_load(block->qh + 16)};
    float scales[16], mins[16];

    scale_k(&block->scales, simd_f16(block->d), simd_f16(block->m), scales, mins);
    UNROLL
    for (size_t i = 0; i < 8; i++) {
        const simd_bytes q = simd_load(block->qs + 16 * i);
        const size_t s = i / 2 * 2;
        const simd_bytes fifth = simd_bits(qh[i % 2], s, 1, 4);
        const simd_bytes next_fifth = simd_bits(qh[i % 2], s + 1, 1, 4);
        float *to = out + 32 * s + 16 * (i % 2);

        simd_put_less(to, simd_low_nibbles(q) | fifth, scales[s], mins[8 + s]);
        simd_put_less(to + 32, simd_high_nibbles(q) | next_fifth, scales[s + 1], mins[8 + s + 1]);
    }
}

SIMD_DECODER(q6_k, DEQUANT_SUPERBLOCK, true)
{
    const simd_bytes half = simd_all(32);
    float scales[DEQUANT_N_16];

    simd_put(scales, simd_load(block->scales), simd_f16(block->d));
    UNROLL
    for (size_t i = 0; i < 4; i++) { /* 16 bytes of the high bits serve four runs of 16 */
        const simd_bytes qh = simd_load(block->qh + 16 * i);
        const uint8_t *ql = block->ql + 64 * (i / 2) + 16 * (i % 2);
        const size_t s = 8 * (i / 2) + i % 2;

        UNROLL
        for (size_t k = 0; k < 4; k++) {
            const simd_bytes low = simd_load(ql + 32 * (k % 2));
            const simd_bytes q = (k < 2 ? simd_low_nibbles(low) : simd_high_nibbles(low)) |
                                 simd_bits(qh, 2 * k, 2, 4);

            simd_put(out + 16 * (s + 2 * k), q - half, scales[s + 2 * k]);
        }
    }
}

SIMD_DECODER(q8_k, DEQUANT_SUPERBLOCK, true)
{
    for (size_t i = 0; i < DEQUANT_N_16; i++)
        simd_put(out + 16 * i, simd_load(block->qs + 16 * i), block->d);
}
