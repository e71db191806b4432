/*
 * Kernels of the types of ik_llama.cpp with interleaved rows that have decoders of their own, or
 * whose plain type is ik_llama.cpp's as well.
 */
#include "dequant/ik_k_blocks.h"
#include "dequant/iq_grids.h"
#include "dequant/kernels/convert_rows.h"

/* ---- Types that are decoded as the plain type ---- */

DECODE(q8_kv_r8, q8_kv, 1, DEQUANT_BLOCK)
{
    for (size_t r = 0; r < DEQUANT_BLOCK / 4; r++)
        memcpy(out->qs + 4 * r, block->qs[r][k], 4);
}

DECODE(iq2_bn_r4, iq2_bn, 1, DEQUANT_BN_BLOCK)
{
    for (size_t t = 0; t < 4; t++) {
        uint32_t word = 0;

        for (size_t r = 0; r < 4; r++)
            word |= (simd_u32(block->qs[r][k]) >> 2 * t & EACH_BYTE(3)) << 2 * r;
        put_word(out->qs, t, word);
    }
}

/* Bit i becomes bit 2i; the others are zero. */
static inline unsigned spread_byte(unsigned bits)
{
    bits = (bits | bits << 4) & 0x0f0f;
    bits = (bits | bits << 2) & 0x3333;
    return (bits | bits << 1) & 0x5555;
}

static inline uint16_t flags_of(const struct dequant_r4_flags *flags, size_t k)
{
    return (uint16_t)(spread_byte(flags->even[k]) | spread_byte(flags->odd[k]) << 1);
}

/* Bytes 0, 2, 4 and 6; the others are zero. */
static inline uint32_t even_bytes(uint64_t bytes)
{
    bytes = (bytes | bytes >> 8) & 0x0000ffff0000ffff;
    return (uint32_t)(bytes | bytes >> 16);
}

/* IQ2_K and IQ3_K: byte i has the scales 2i and 2i + 1. */
static inline void put_scale_nibbles(const uint8_t scales[DEQUANT_N_16 / 2][DEQUANT_R4_ROWS],
                                     size_t k, uint8_t to[DEQUANT_N_16 / 2])
{
    const uint64_t all = get_column_8(scales, k), fours = 0x000f000f000f000f;
    const uint64_t low = (all & fours) | (all >> 4 & fours << 4);
    const uint64_t high = (all >> 4 & fours) | (all >> 8 & fours << 4);

    put_word(to, 0, even_bytes(low));
    put_word(to, 1, even_bytes(high));
}

DECODE(iq2_k_r4, iq2_k, 1, DEQUANT_SUPERBLOCK)
{
    out->d = block->d[k];
    out->flags = flags_of(&block->flags, k);
    put_scale_nibbles(block->scales, k, out->scales);
    put_pairs(block->qs, k, out->qs);
}

DECODE(iq3_k_r4, iq3_k, 1, DEQUANT_SUPERBLOCK)
{
    out->d = block->d[k];
    out->flags = flags_of(&block->flags, k);
    out->signs = flags_of(&block->signs, k);
    put_scale_nibbles(block->scales, k, out->scales);
    put_pairs(block->qs, k, out->qs);
    put_bits(block->qh, k, q3_k_places, out->qh);
}

static inline void put_ik_scales(const struct dequant_r4_scales *restrict in, size_t k,
                                 struct dequant_ik_scales *restrict out)
{
    put_scale_nibbles(in->low, k, out->low);
    /* Bits 2i of byte j become bits 2j of byte i. */
    const words high = {get_column_4(in->high, k)};

    put_word(out->high, 0, exchange_bits(exchange_bits(high, 12, 0x0000f0f0), 6, 0x00cc00cc)[0]);
}

DECODE(iq4_k_r4, iq4_k, 1, DEQUANT_SUPERBLOCK)
{
    out->d = block->d[k];
    out->flags = flags_of(&block->flags, k);
    put_ik_scales(&block->scales, k, &out->scales);
    for (size_t b = 0; b < DEQUANT_N_32; b++)
        put_nibbles_16(&block->qs[b], k, out->qs[b]);
}

DECODE(iq5_k_r4, iq5_k, 1, DEQUANT_SUPERBLOCK)
{
    out->d = block->d[k];
    out->flags = flags_of(&block->flags, k);
    put_ik_scales(&block->scales, k, &out->scales);
    put_nibbles_32(block->qs, k, out->qs);
    put_bits(block->qh, k, iq5_k_places, out->qh);
}

DECODE(iq5_ks_r4, iq5_ks, 1, DEQUANT_SUPERBLOCK)
{
    put_column_8(block->scales, k, out->scales);
    put_nibbles_32(block->qs, k, out->qs);
    put_bits(block->qh, k, iq5_k_places, out->qh);
}

/* ---- Types with decoders of their own ---- */

/* Write q * d + m of 16 elements. */
INLINE void put_16(words codes, float d, float m, float *out)
{
    simd_bytes q;

    memcpy(&q, &codes, sizeof q);
    simd_put_plus(out, q, d, m);
}

SIMD_DECODER(q5_0_r4, DEQUANT_BLOCK, true)
{
    const float d = simd_f16(block->d[row.index]);

    for (size_t h = 0; h < 2; h++)
        put_16((get_nibbles(&block->qs, row.index, h) |
                get_bits(&block->qh, row.index, q5_0_places[h]) << 4),
               d, -16 * d, out + 16 * h);
}

SIMD_DECODER(q6_0_r4, DEQUANT_BLOCK, true)
{
    const float d = simd_f16(block->d[row.index]);

    for (size_t h = 0; h < 2; h++)
        put_16((get_nibbles(&block->qs, row.index, h) | get_pairs(&block->qh, row.index, h) << 4),
               d, -32 * d, out + 16 * h);
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

SIMD_DECODER(iq1_s_r4, DEQUANT_BLOCK, true)
{
    const unsigned high = block->qh[row.index];
    const float scale = dequant_f16_row_scale(row) * (float)(2 * (high >> 12 & 7) + 1);
    const simd_floats shift = simd_all_floats(eighth(high >> 15));

    for (size_t i = 0; i < 4; i += 2)
        put_runs(out + 8 * i, block->qs[i][row.index] | (high >> 3 * i & 7) << 8,
                 block->qs[i + 1][row.index] | (high >> 3 * (i + 1) & 7) << 8, shift, scale);
}

SIMD_DECODER(iq1_m_r4, DEQUANT_BLOCK, true)
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

        put_r4(out, &block->qs[s], row.index,
               simd_load(dequant_iq4_values) + simd_all(dequant_ks_shift(scale)),
               d * (float)dequant_ks_scale(scale));
    }
}
