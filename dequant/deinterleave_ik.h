/* Takes rows apart as deinterleave.h does, for types whose plain type is ik_llama.cpp's. */
#pragma once

#include "dequant/deinterleave.h"
#include "dequant/ik_k_blocks.h"

static inline void q6_0_r4_deinterleave(const struct dequant_q6_0_r4 *restrict block, size_t k,
                                        struct dequant_q6_0 *restrict out)
{
    out->d = block->d[k];
    put_nibbles_16(&block->qs, k, out->qs);

    const words low = get_pairs(&block->qh, k, 0) | get_pairs(&block->qh, k, 1) << 2;

    put_word(out->qh, 0, low[0] | low[2] << 4);
    put_word(out->qh, 1, low[1] | low[3] << 4);
}

static inline void q8_kv_r8_deinterleave(const struct dequant_q8_kv_r8 *restrict block, size_t k,
                                         struct dequant_q8_kv *restrict out)
{
    for (size_t r = 0; r < DEQUANT_BLOCK / 4; r++)
        memcpy(out->qs + 4 * r, block->qs[r][k], 4);
}

static inline void iq2_bn_r4_deinterleave(const struct dequant_iq2_bn_r4 *restrict block, size_t k,
                                          struct dequant_iq2_bn *restrict out)
{
    for (size_t t = 0; t < 4; t++) {
        uint32_t word = 0;

        for (size_t r = 0; r < 4; r++)
            word |= (get_word(block->qs[r][k]) >> 2 * t & EACH_BYTE(3)) << 2 * r;
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

static inline void iq2_k_r4_deinterleave(const struct dequant_iq2_k_r4 *restrict block, size_t k,
                                         struct dequant_iq2_k *restrict out)
{
    out->d = block->d[k];
    out->flags = flags_of(&block->flags, k);
    put_scale_nibbles(block->scales, k, out->scales);
    put_pairs(block->qs, k, out->qs);
}

static inline void iq3_k_r4_deinterleave(const struct dequant_iq3_k_r4 *restrict block, size_t k,
                                         struct dequant_iq3_k *restrict out)
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

static inline void iq4_k_r4_deinterleave(const struct dequant_iq4_k_r4 *restrict block, size_t k,
                                         struct dequant_iq4_k *restrict out)
{
    out->d = block->d[k];
    out->flags = flags_of(&block->flags, k);
    put_ik_scales(&block->scales, k, &out->scales);
    for (size_t b = 0; b < DEQUANT_N_32; b++)
        put_nibbles_16(&block->qs[b], k, out->qs[b]);
}

static inline void iq5_k_r4_deinterleave(const struct dequant_iq5_k_r4 *restrict block, size_t k,
                                         struct dequant_iq5_k *restrict out)
{
    out->d = block->d[k];
    out->flags = flags_of(&block->flags, k);
    put_ik_scales(&block->scales, k, &out->scales);
    put_nibbles_32(block->qs, k, out->qs);
    put_bits(block->qh, k, iq5_k_places, out->qh);
}

static inline void iq5_ks_r4_deinterleave(const struct dequant_iq5_ks_r4 *restrict block, size_t k,
                                          struct dequant_iq5_ks *restrict out)
{
    put_column_8(block->scales, k, out->scales);
    put_nibbles_32(block->qs, k, out->qs);
    put_bits(block->qh, k, iq5_k_places, out->qh);
}

/* As DEQUANT_INTERLEAVED. */
#define DEQUANT_INTERLEAVED_IK(DO, set)                                                            \
    DO(set, iq2_bn_r4, iq2_bn, 1, DEQUANT_BN_BLOCK, 4)                                             \
    DO(set, iq2_k_r4, iq2_k, 1, DEQUANT_SUPERBLOCK, 0)                                             \
    DO(set, iq3_k_r4, iq3_k, 1, DEQUANT_SUPERBLOCK, 0)                                             \
    DO(set, iq4_k_r4, iq4_k, 1, DEQUANT_SUPERBLOCK, 0)                                             \
    DO(set, iq5_k_r4, iq5_k, 1, DEQUANT_SUPERBLOCK, 0)                                             \
    DO(set, iq5_ks_r4, iq5_ks, 1, DEQUANT_SUPERBLOCK, 4)                                           \
    DO(set, q8_kv_r8, q8_kv, 1, DEQUANT_BLOCK, 4)
