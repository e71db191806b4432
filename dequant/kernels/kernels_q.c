/* Kernels of the types with one scale per block, of the ternary types and of 4-bit floats. */
#include "dequant/fork_blocks.h"
#include "dequant/kernels/simd.h"

/* 64 numbers of two bits, minus one, in the order of the elements. */
INLINE void put_64_of_2_bits(float *out, simd_bytes q, float d)
{
    const simd_bytes three = simd_all(3), one = simd_all(1);
    const simd_bytes q0 = (q & three) - one;
    const simd_bytes q1 = (simd_shift_right(q, 2) & three) - one;
    const simd_bytes q2 = (simd_shift_right(q, 4) & three) - one;
    const simd_bytes q3 = simd_shift_right(q, 6) - one;
    const simd_bytes low_01 = simd_zip_low_1(q0, q1), low_23 = simd_zip_low_1(q2, q3);
    const simd_bytes high_01 = simd_zip_high_1(q0, q1), high_23 = simd_zip_high_1(q2, q3);

    simd_put(out, simd_zip_low_2(low_01, low_23), d);
    simd_put(out + 16, simd_zip_high_2(low_01, low_23), d);
    simd_put(out + 32, simd_zip_low_2(high_01, high_23), d);
    simd_put(out + 48, simd_zip_high_2(high_01, high_23), d);
}

/* 16 times d, or -d where a bit is zero. */
INLINE void put_16_of_1_bit(float *out, const uint8_t bits[2], float d)
{
    simd_put(out, simd_keep_where(simd_all(2), simd_u16(bits)) - 1, d);
}

SIMD_DECODER(q1_0, DEQUANT_Q1_0_BLOCK, simd_is_finite(block->d))
{
    const float d = simd_f16(block->d);

    for (size_t i = 0; i < DEQUANT_Q1_0_BLOCK / 16; i++)
        put_16_of_1_bit(out + 16 * i, block->qs + 2 * i, d);
}

SIMD_DECODER(q2_0, DEQUANT_Q2_0_BLOCK, true)
{
    put_64_of_2_bits(out, simd_load(block->qs), simd_f16(block->d));
}

SIMD_DECODER(q1_0_g32, DEQUANT_BLOCK, simd_is_finite(block->d))
{
    const float d = simd_f16(block->d);

    for (size_t i = 0; i < DEQUANT_BLOCK / 16; i++)
        put_16_of_1_bit(out + 16 * i, block->qs + 2 * i, d);
}

SIMD_DECODER(pq2_0, DEQUANT_PRISM_BLOCK, true)
{
    const float d = simd_f16(block->d);

    put_64_of_2_bits(out, simd_load(block->qs), d);
    put_64_of_2_bits(out + 64, simd_load(block->qs + 16), d);
}

SIMD_DECODER(q4_0, DEQUANT_BLOCK, true)
{
    const float d = simd_f16(block->d);
    const simd_bytes q = simd_load(block->qs), eight = simd_all(8);

    simd_put(out, simd_low_nibbles(q) - eight, d);
    simd_put(out + 16, simd_high_nibbles(q) - eight, d);
}

SIMD_DECODER(q4_1, DEQUANT_BLOCK, simd_is_finite(block->d) && simd_is_finite(block->m))
{
    const float d = simd_f16(block->d), m = simd_f16(block->m);
    const simd_bytes q = simd_load(block->qs);

    simd_put_plus(out, simd_low_nibbles(q), d, m);
    simd_put_plus(out + 16, simd_high_nibbles(q), d, m);
}

SIMD_DECODER(q5_0, DEQUANT_BLOCK, true)
{
    const float d = simd_f16(block->d);
    const simd_bytes q = simd_load(block->qs), sixteen = simd_all(16);
    const simd_bytes low = simd_low_nibbles(q) | simd_fifth_bits(block->qh);
    const simd_bytes high = simd_high_nibbles(q) | simd_fifth_bits(block->qh + 2);

    simd_put(out, low - sixteen, d);
    simd_put(out + 16, high - sixteen, d);
}

SIMD_DECODER(q5_1, DEQUANT_BLOCK, simd_is_finite(block->d) && simd_is_finite(block->m))
{
    const float d = simd_f16(block->d), m = simd_f16(block->m);
    const simd_bytes q = simd_load(block->qs);

    simd_put_plus(out, simd_low_nibbles(q) | simd_fifth_bits(block->qh), d, m);
    simd_put_plus(out + 16, simd_high_nibbles(q) | simd_fifth_bits(block->qh + 2), d, m);
}

SIMD_DECODER(q8_0, DEQUANT_BLOCK, true)
{
    const float d = simd_f16(block->d);

    simd_put(out, simd_load(block->qs), d);
    simd_put(out + 16, simd_load(block->qs + 16), d);
}

SIMD_DECODER(q8_1, DEQUANT_BLOCK, true)
{
    const float d = simd_f16(block->d);

    simd_put(out, simd_load(block->qs), d);
    simd_put(out + 16, simd_load(block->qs + 16), d);
}

/*
 * The first digit of a byte's fraction, minus one. Three times the fraction passes 256 from 86 on,
 * and 512 from 171 on.
 */
INLINE simd_bytes first_digit(simd_bytes fraction)
{
    const simd_bytes digit =
        simd_at_least(fraction, 86) + simd_at_least(fraction, 171); /* 0, -1, -2 */

    return simd_all(-1) - digit;
}

/* The fraction without its first digit, which overflows. */
INLINE simd_bytes next_digits(simd_bytes fraction)
{
    return fraction + fraction + fraction;
}

/* The five digits of 16 bytes, `stride` elements apart. */
INLINE void put_digits(float *out, size_t stride, simd_bytes fraction, float d)
{
    for (size_t i = 0; i < 5; i++) {
        simd_put(out + i * stride, first_digit(fraction), d);
        fraction = next_digits(fraction);
    }
}

SIMD_DECODER(tq1_0, DEQUANT_SUPERBLOCK, true)
{
    const float d = simd_f16(block->d);
    const uint32_t tail = simd_u32(block->tail);
    const simd_bytes f0 = simd_four(tail, tail, tail, tail);
    const simd_bytes f1 = next_digits(f0), f2 = next_digits(f1), f3 = next_digits(f2);
    const simd_bytes all = simd_zip_low_8(simd_zip_low_4(f0, f1), simd_zip_low_4(f2, f3));

    put_digits(out, 32, simd_load(block->wide), d);
    put_digits(out + 16, 32, simd_load(block->wide + 16), d);
    put_digits(out + 160, 16, simd_load(block->narrow), d);
    simd_put(out + 240, first_digit(all), d);
}

SIMD_DECODER(ptq1_0, DEQUANT_PRISM_BLOCK, true)
{
    const float d = simd_f16(block->d);
    const uint32_t narrow_0 = simd_u32(block->narrow), narrow_1 = simd_u32(block->narrow + 4);
    const uint32_t tail = simd_u16(block->tail) * 0x10001u;
    const simd_bytes f0 = simd_four(narrow_0, narrow_1, narrow_0, narrow_1);
    const simd_bytes f1 = next_digits(f0), f2 = next_digits(f1), f3 = next_digits(f2);
    const simd_bytes g0 = simd_four(tail, tail, tail, tail);
    const simd_bytes g1 = next_digits(g0), g2 = next_digits(g1), g3 = next_digits(g2);
    const simd_bytes last = simd_zip_low_4(simd_zip_low_2(g0, g1), simd_zip_low_2(g2, g3));

    put_digits(out, 16, simd_load(block->wide), d);
    simd_put(out + 80, first_digit(simd_zip_low_8(f0, f1)), d);
    simd_put(out + 96, first_digit(simd_zip_low_8(f2, f3)), d);
    simd_put(out + 112, first_digit(simd_zip_low_8(next_digits(f3), last)), d);
}

INLINE void put_tq2_0(float *out, const uint8_t *qs, float d)
{
    for (size_t i = 0; i < DEQUANT_SUPERBLOCK / 64; i++) {
        const simd_bytes q = simd_load(qs + 16 * i);
        float *to = out + 128 * (i / 2) + 16 * (i % 2);

        for (size_t k = 0; k < 4; k++) {
            const simd_bytes digit = simd_shift_right(q, 2 * (int)k) & 3;

            simd_put(to + 32 * k, digit - 1, d);
        }
    }
}

SIMD_DECODER(tq2_0, DEQUANT_SUPERBLOCK, true)
{
    put_tq2_0(out, block->qs, simd_f16(block->d));
}

SIMD_DECODER(row_iq2_tn, DEQUANT_SUPERBLOCK, true)
{
    put_tq2_0(out, block->qs, dequant_f32_row_scale(row));
}

SIMD_DECODER(mxfp4, DEQUANT_BLOCK, true)
{
    const float d = dequant_half_e8m0_to_f32(block->e);
    const simd_bytes table = simd_load(dequant_doubled_e2m1), q = simd_load(block->qs);

    simd_put(out, simd_look_up(table, simd_low_nibbles(q)), d);
    simd_put(out + 16, simd_look_up(table, simd_high_nibbles(q)), d);
}

SIMD_DECODER(nvfp4, DEQUANT_NVFP4_BLOCK, true)
{
    const simd_bytes table = simd_load(dequant_doubled_e2m1);

    for (size_t s = 0; s < DEQUANT_NVFP4_BLOCK / 16; s += 2) {
        const simd_bytes q = simd_load(block->qs[s]);
        const simd_bytes low = simd_look_up(table, simd_low_nibbles(q));
        const simd_bytes high = simd_look_up(table, simd_high_nibbles(q));

        simd_put(out + 16 * s, simd_zip_low_8(low, high),
                 dequant_half_ue4m3_to_f32(block->scales[s]));
        simd_put(out + 16 * s + 16, simd_zip_high_8(low, high),
                 dequant_half_ue4m3_to_f32(block->scales[s + 1]));
    }
}
