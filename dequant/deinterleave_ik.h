/* Takes rows apart as deinterleave.h does, for types whose plain type is ik_llama.cpp's. */
#ifndef GGUFS_DEQUANT_DEINTERLEAVE_IK_H
#define GGUFS_DEQUANT_DEINTERLEAVE_IK_H

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

/* IQ2_K and IQ3_K: byte i has the scales 2i and 2i + 1. */
static inline void put_scale_nibbles(const uint8_t scales[DEQUANT_N_16 / 2][DEQUANT_R4_ROWS],
                                     size_t k, uint8_t to[DEQUANT_N_16 / 2])
{
    for (size_t i = 0; i < 4; i++) {
        const unsigned even = scales[2 * i][k], odd = scales[2 * i + 1][k];

        to[i] = (uint8_t)((even & 15) | (odd & 15) << 4);
        to[i + 4] = (uint8_t)(even >> 4 | (odd & 240));
    }
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
    for (size_t i = 0; i < 4; i++)
        out->high[i] =
            (uint8_t)((in->high[0][k] >> 2 * i & 3) | (in->high[1][k] >> 2 * i & 3) << 2 |
                      (in->high[2][k] >> 2 * i & 3) << 4 | (in->high[3][k] >> 2 * i & 3) << 6);
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
    for (size_t b = 0; b < DEQUANT_N_32; b++)
        out->scales[b] = block->scales[b][k];
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

#endif
