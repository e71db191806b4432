/*
 * Kernels of the K, KS, KSS and KL types of ik_llama.cpp that do not interleave rows.
 */
#include "dequant/ik_k_blocks.h"
#include "dequant/iq_grids.h"
#include "dequant/kernels/simd.h"

INLINE int bit(unsigned bits, size_t i)
{
    return (int)(bits >> i) & 1;
}

/*
 * The bits of elements 16s to 16s+15, moved to bit `to`. Bits are stored in 32 bytes for 128
 * elements (two bits each), 256 elements (one bit) or 64 elements (four bits).
 */
INLINE simd_bytes two_bits(const uint8_t *bytes, size_t s, size_t to)
{
    return simd_bits(simd_load(bytes + 32 * (s / 8) + 16 * (s % 2)), 2 * (s % 8 / 2), 2, to);
}

INLINE simd_bytes one_bit(const uint8_t *bytes, size_t s, size_t to)
{
    return simd_bits(simd_load(bytes + 16 * (s % 2)), s / 2, 1, to);
}

INLINE simd_bytes four_bits(const uint8_t *bytes, size_t s)
{
    return simd_bits(simd_load(bytes + 32 * (s / 4) + 16 * (s % 2)), 4 * (s % 4 / 2), 4, 0);
}

/* The values of types with two bits. */
INLINE simd_bytes two_bit_values(const uint8_t *qs, size_t s, int flag)
{
    return simd_look_up(simd_load_8(dequant_iq2_k_values), two_bits(qs, s, 0) | simd_all(4 * flag));
}

/* The values of types with three bits. */
INLINE simd_bytes three_bit_values(const uint8_t *qs, const uint8_t *qh, size_t s, int flag)
{
    const simd_bytes q = two_bits(qs, s, 0) | one_bit(qh, s, 2);

    return simd_look_up(simd_load(dequant_iq3_k_values), q | simd_all(8 * flag));
}

/* The values of types with five bits. */
INLINE simd_bytes five_bit_values(const uint8_t *qs, const uint8_t *qh, size_t s, int flag)
{
    const simd_bytes q = four_bits(qs, s) | one_bit(qh, s, 4);

    return simd_look_up_long(dequant_iq5_k_values, 2, q) + simd_all(2 * flag);
}

/* The 16 scales of IQ4_K and IQ5_K, -32 to 31. */
INLINE simd_bytes six_bit_scales(const struct dequant_ik_scales *scales)
{
    const simd_bytes bytes = simd_four(simd_u32(scales->high), 0, 0, 0);
    const simd_bytes even = simd_zip_low_1(simd_bits(bytes, 0, 2, 4), simd_bits(bytes, 2, 2, 4));
    const simd_bytes odd = simd_zip_low_1(simd_bits(bytes, 4, 2, 4), simd_bits(bytes, 6, 2, 4));

    return (simd_nibbles(scales->low) | simd_zip_low_2(even, odd)) - 32;
}

INLINE void put_iq2_k(float *out, const struct dequant_iq2_k *block, simd_bytes q)
{
    float scales[DEQUANT_N_16];

    simd_put(scales, q, simd_f16(block->d));
    UNROLL
    for (size_t s = 0; s < DEQUANT_N_16; s++)
        simd_put(out + 16 * s, two_bit_values(block->qs, s, bit(block->flags, s)), scales[s]);
}

SIMD_DECODER(iq2_k, DEQUANT_SUPERBLOCK, true)
{
    put_iq2_k(out, block, simd_nibbles(block->scales) - 8);
}

SIMD_DECODER_OF(old_iq2_k, iq2_k, DEQUANT_SUPERBLOCK, true)
{
    const simd_bytes q = simd_nibbles(block->scales);

    put_iq2_k(out, block, q + q - 15);
}

SIMD_DECODER(iq3_k, DEQUANT_SUPERBLOCK, true)
{
    const simd_bytes q = simd_nibbles(block->scales);
    const simd_bytes odd = q + q + 1;
    float scales[DEQUANT_N_16];

    simd_put(scales, simd_negate_where(odd, block->signs), simd_f16(block->d));
    UNROLL
    for (size_t s = 0; s < DEQUANT_N_16; s++)
        simd_put(out + 16 * s, three_bit_values(block->qs, block->qh, s, bit(block->flags, s)),
                 scales[s]);
}

SIMD_DECODER(iq4_k, DEQUANT_SUPERBLOCK, true)
{
    const simd_bytes table = simd_load(dequant_iq4_values);
    float scales[DEQUANT_N_16];

    simd_put(scales, six_bit_scales(&block->scales), simd_f16(block->d));
    UNROLL
    for (size_t s = 0; s < DEQUANT_N_16; s++) {
        const simd_bytes q = simd_bits(simd_load(block->qs[s / 2]), 4 * (s % 2), 4, 0);
        const simd_bytes shift = simd_all(4 * bit(block->flags, s));

        simd_put(out + 16 * s, simd_look_up(table, q) + shift, scales[s]);
    }
}

SIMD_DECODER(iq5_k, DEQUANT_SUPERBLOCK, true)
{
    float scales[DEQUANT_N_16];

    simd_put(scales, six_bit_scales(&block->scales), simd_f16(block->d));
    UNROLL
    for (size_t s = 0; s < DEQUANT_N_16; s++)
        simd_put(out + 16 * s, five_bit_values(block->qs, block->qh, s, bit(block->flags, s)),
                 scales[s]);
}

SIMD_DECODER(iq6_k, DEQUANT_SUPERBLOCK, true)
{
    float scales[DEQUANT_N_16];

    simd_put(scales, simd_load(block->scales), simd_f16(block->d));
    UNROLL
    for (size_t s = 0; s < DEQUANT_N_16; s++) {
        const simd_bytes q = four_bits(block->qs, s) | two_bits(block->qh, s, 4);
        const simd_bytes values = simd_look_up_long(dequant_iq6_k_values, 4, q);

        simd_put(out + 16 * s, values + simd_all(bit(block->flags, s)), scales[s]);
    }
}

SIMD_DECODER(iq2_ks, DEQUANT_SUPERBLOCK, true)
{
    const float d = dequant_f16_row_scale(row);

    UNROLL
    for (size_t b = 0; b < DEQUANT_N_32; b++) {
        const int low = (block->scales[b / 2] >> (4 * (b % 2))) & 15;
        const float scale = d * (float)((low | bit(block->extra, 8 + b) << 4) - 16);

        for (size_t s = 2 * b; s < 2 * b + 2; s++)
            simd_put(out + 16 * s, two_bit_values(block->qs, s, bit(block->extra, b)), scale);
    }
}

SIMD_DECODER(iq3_ks, DEQUANT_SUPERBLOCK, true)
{
    const float d = dequant_f16_row_scale(row);

    UNROLL
    for (size_t b = 0; b < DEQUANT_N_32; b++) {
        const int low = dequant_far_nibble(block->scales, b);
        const float scale = d * (float)((low | bit(block->extra, b) << 4) - 16);

        for (size_t s = 2 * b; s < 2 * b + 2; s++)
            simd_put(out + 16 * s,
                     three_bit_values(block->qs, block->qh, s, bit(block->extra, 8 + b)), scale);
    }
}

/* Bits 0, 16, 32 and 48 as a number: the multiplication brings them next to each other. */
INLINE unsigned lowest_bits(uint64_t words)
{
    return (unsigned)(((words & 0x0001000100010001) * 0x0001000200040008) >> 48) & 15;
}

/* The codes of four words of IQ4_KSS. */
INLINE uint64_t codes_of(uint64_t words)
{
    words &= 0xfffefffefffefffe;
    return words ^ ((words >> 1) & 0x7fff7fff7fff7fff);
}

/* 32 elements of IQ4_KS; `scale` is a scale byte. */
INLINE void put_iq4_ks(float *out, simd_bytes q, uint8_t scale, float d)
{
    const simd_bytes table = simd_load(dequant_iq4_values) + simd_all(dequant_ks_shift(scale));

    simd_put(out, simd_look_up(table, simd_low_nibbles(q)), d * (float)dequant_ks_scale(scale));
    simd_put(out + 16, simd_look_up(table, simd_high_nibbles(q)),
             d * (float)dequant_ks_scale(scale));
}

SIMD_DECODER(iq4_ks, DEQUANT_SUPERBLOCK, true)
{
    const float d = dequant_f32_row_scale(row);

    for (size_t s = 0; s < DEQUANT_N_32; s++)
        put_iq4_ks(out + 32 * s, simd_load(block->qs[s]), block->scales[s], d);
}

SIMD_DECODER(iq4_kss, DEQUANT_SUPERBLOCK, true)
{
    const float d = dequant_f32_row_scale(row);

    for (size_t b = 0; b < DEQUANT_N_32; b++, out += 32) {
        const uint64_t low = simd_u64(block->words[b]), high = simd_u64(block->words[b] + 4);

        put_iq4_ks(out, simd_two(codes_of(low), codes_of(high)),
                   (uint8_t)(lowest_bits(low) | lowest_bits(high) << 4), d);
    }
}

SIMD_DECODER(iq5_ks, DEQUANT_SUPERBLOCK, true)
{
    const float d = dequant_f32_row_scale(row);

    UNROLL
    for (size_t b = 0; b < DEQUANT_N_32; b++) {
        const float scale = d * (float)dequant_ks_scale(block->scales[b]);

        for (size_t s = 2 * b; s < 2 * b + 2; s++)
            simd_put(out + 16 * s, five_bit_values(block->qs, block->qh, s, block->scales[b] & 1),
                     scale);
    }
}

SIMD_DECODER(iq2_kl, DEQUANT_SUPERBLOCK, true)
{
    const float d = dequant_f16_row_scale(row);

    UNROLL
    for (size_t b = 0; b < DEQUANT_N_32; b++) {
        const int high = (block->scales_high >> (2 * b)) & 3;
        const float scale =
            d * (float)((dequant_far_nibble(block->scales_low, b) | high << 4) - 32);
        const simd_bytes low = simd_bits(simd_load(block->qs + b / 2 * 16), 4 * (b % 2), 4, 0);
        const simd_bytes q = low | simd_bits(simd_load(block->qh), b, 1, 4);
        const simd_bytes even = simd_look_up_long(dequant_iq2_kl_values[0], 2, q);
        const simd_bytes odd = simd_look_up_long(dequant_iq2_kl_values[1], 2, q);

        simd_put(out + 32 * b, simd_zip_low_1(even, odd), scale);
        simd_put(out + 32 * b + 16, simd_zip_high_1(even, odd), scale);
    }
}
