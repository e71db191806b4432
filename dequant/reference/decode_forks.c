/*
 * Decoders of the types in dequant/fork_blocks.h, and their conversion to types of ggml. A type
 * that is decoded seldom is converted first, which is exact.
 */
#include "dequant/deinterleave.h"
#include "dequant/fork_blocks.h"
#include "dequant/ik_k_blocks.h"
#include "dequant/iq_blocks.h"
#include "dequant/slots.h"
#include "dequant/small_floats.h"

#include <string.h>

/* ---- Types with decoders of their own ---- */

/* Digit k of a byte, see struct dequant_tq1_0. */
static inline int digit(uint8_t byte, size_t k)
{
    static const uint8_t powers[5] = {1, 3, 9, 27, 81};

    return (uint8_t)(byte * powers[k]) * 3 >> 8;
}

/* Element e of a block, 0 to 2. */
static inline int ptq1_0_digit(const struct dequant_ptq1_0 *block, size_t e)
{
    if (e < 80)
        return digit(block->wide[e % 16], e / 16);
    if (e < 120)
        return digit(block->narrow[e % 8], (e - 80) / 8);
    return digit(block->tail[e % 2], (e - 120) / 2);
}

/* The order of the operations is llama-turboquant's. */
static inline void tq3_0_block(const struct dequant_tq3_0 *restrict block, float *restrict out)
{
    static const float centroids[4] = {-1.510F, -0.4528F, 0.4528F, 1.510F};
    static const uint32_t minus = 0xb1a6d4b2; /* bit i: the sign of element i */
    const float d = dequant_f16_to_f32(block->d);

    for (size_t i = 0; i < DEQUANT_BLOCK; i++)
        out[i] = d * centroids[(block->qs[i / 4] >> (i % 4 * 2)) & 3];
    for (size_t step = 1; step < DEQUANT_BLOCK; step *= 2) {
        for (size_t i = 0; i < DEQUANT_BLOCK; i++) {
            const float a = out[i & ~step], b = out[i | step];

            if (i & step)
                continue;
            out[i] = a + b;
            out[i + step] = a - b;
        }
    }
    for (size_t i = 0; i < DEQUANT_BLOCK; i++)
        out[i] *= (minus >> i) & 1 ? -0.17677669529663688F : 0.17677669529663688F;
}

static inline void row_iq2_tn_block(const struct dequant_row_iq2_tn *restrict block,
                                    struct dequant_row row, float *restrict out)
{
    const float d = dequant_f32_row_scale(row);

    for (size_t i = 0; i < DEQUANT_SUPERBLOCK; i++)
        out[i] = d * (float)(((block->qs[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3) - 1);
}

DEQUANT_DEFINE_DECODER(tq3_0, DEQUANT_BLOCK)
DEQUANT_DEFINE_ROW_DECODER(row_iq2_tn, DEQUANT_SUPERBLOCK)

/* ---- Conversion ---- */

/* ±d is (8 ± 1 - 8) * d. */
static inline void q1_0_g32_deinterleave(const struct dequant_q1_0_g32 *restrict block, size_t k,
                                         struct dequant_q4_0 *restrict out)
{
    (void)k;
    out->d = block->d;
    for (size_t i = 0; i < DEQUANT_BLOCK / 2; i++) {
        const unsigned low = (block->qs[i / 8] >> (i % 8)) & 1;
        const unsigned high = (block->qs[i / 8 + 2] >> (i % 8)) & 1;

        out->qs[i] = (uint8_t)(0x77 + 2 * low + 32 * high);
    }
}

static inline void pq2_0_deinterleave(const struct dequant_pq2_0 *restrict block, size_t k,
                                      struct dequant_q2_0 *restrict out)
{
    (void)k;
    for (size_t i = 0; i < 2; i++) {
        out[i].d = block->d;
        memcpy(out[i].qs, block->qs + i * sizeof out->qs, sizeof out->qs);
    }
}

static inline void put_two_bits(struct dequant_q2_0 *restrict out, size_t e, int q)
{
    uint8_t *byte = &out[e / DEQUANT_Q2_0_BLOCK].qs[e % DEQUANT_Q2_0_BLOCK / 4];

    *byte = (uint8_t)((e % 4 == 0 ? 0 : *byte) | q << (e % 4 * 2));
}

static inline void ptq1_0_deinterleave(const struct dequant_ptq1_0 *restrict block, size_t k,
                                       struct dequant_q2_0 *restrict out)
{
    (void)k;
    out[0].d = out[1].d = block->d;
    for (size_t e = 0; e < DEQUANT_PRISM_BLOCK; e++)
        put_two_bits(out, e, ptq1_0_digit(block, e));
}

static inline void iq2_tn_deinterleave(const struct dequant_iq2_tn *restrict block, size_t k,
                                       struct dequant_tq2_0 *restrict out)
{
    (void)k;
    out->d = block->d;
    memcpy(out->qs, block->qs, sizeof out->qs);
}

/* IQ1_BN and IQ2_BN had no scale at first: d is 1. */
enum { F16_ONE = 0x3c00 };

static inline void bare_iq1_bn_deinterleave(const struct dequant_iq1_bn *restrict block, size_t k,
                                            struct dequant_q2_0 *restrict out)
{
    (void)k;
    out->d = F16_ONE;
    for (size_t e = 0; e < DEQUANT_BN_BLOCK; e++) {
        const size_t i = e % 16;

        put_two_bits(out, e,
                     i < 15 ? digit(block->fives[e / 16][i / 5], 4 - i % 5)
                            : digit(block->rest, 4 - e / 16));
    }
}

static inline void bare_iq2_bn_deinterleave(const struct dequant_iq2_bn *restrict block, size_t k,
                                            struct dequant_q2_0 *restrict out)
{
    (void)k;
    out->d = F16_ONE;
    for (size_t e = 0; e < DEQUANT_BN_BLOCK; e++)
        put_two_bits(out, e, (block->qs[e % 16] >> (e / 16 * 2)) & 3);
}

DEFINE_RUNS(iq4_nl_4_4, iq4_nl, 0)

static inline void q4_0_r4_deinterleave(const struct dequant_q4_0_r4 *restrict block, size_t k,
                                        struct dequant_q4_0 *restrict out)
{
    out->d = block->d[k];
    put_nibbles_16(&block->qs, k, out->qs);
}

static inline void q8_0_r4_deinterleave(const struct dequant_q8_0_r4 *restrict block, size_t k,
                                        struct dequant_q8_0 *restrict out)
{
    out->d = block->d[k];
    for (size_t r = 0; r < 4; r++) {
        memcpy(out->qs + 4 * r, block->qs[r][0][k], 4);
        memcpy(out->qs + 16 + 4 * r, block->qs[r][1][k], 4);
    }
}

static inline void iq4_xs_r4_deinterleave(const struct dequant_iq4_xs_r4 *restrict block, size_t k,
                                          struct dequant_iq4_xs *restrict out)
{
    unsigned high = 0;

    out->d = block->d[k];
    memset(out->scales_low, 0, sizeof out->scales_low);
    for (size_t b = 0; b < DEQUANT_N_32; b++) {
        const size_t n = DEQUANT_R4_ROWS * b + k;
        const unsigned low = (block->scales_low[n % 16] >> (n / 16 * 4)) & 15;

        high |= (unsigned)((block->scales_high[n % 8] >> (n / 8 * 2)) & 3) << (2 * b);
        out->scales_low[b / 2] |= (uint8_t)(low << (b % 2 * 4));
        put_nibbles_16(&block->qs[b], k, out->qs[b]);
    }
    out->scales_high = (uint16_t)high;
}

/* Names of structs for types that share one. */
#define dequant_bare_iq1_bn dequant_iq1_bn
#define dequant_bare_iq2_bn dequant_iq2_bn

DEQUANT_DEFINE_DEINTERLEAVER(q1_0_g32, q4_0, 1)
DEQUANT_DEFINE_DEINTERLEAVER(pq2_0, q2_0, 2)
DEQUANT_DEFINE_DEINTERLEAVER(ptq1_0, q2_0, 2)

/* Types that are decoded as the plain type. */
#define DEFINE_BOTH(type, plain, elements)                                                         \
    DEQUANT_DEFINE_DEINTERLEAVER(type, plain, 1)                                                   \
    DEQUANT_DEFINE_INTERLEAVED(scalar, type, plain, 1, elements, 0)

DEFINE_BOTH(iq2_tn, tq2_0, DEQUANT_SUPERBLOCK)
DEFINE_BOTH(bare_iq1_bn, q2_0, DEQUANT_BN_BLOCK)
DEFINE_BOTH(bare_iq2_bn, q2_0, DEQUANT_BN_BLOCK)
DEFINE_BOTH(iq4_nl_4_4, iq4_nl, DEQUANT_BLOCK)
DEFINE_BOTH(q4_0_r4, q4_0, DEQUANT_BLOCK)
DEFINE_BOTH(q8_0_r4, q8_0, DEQUANT_BLOCK)
DEFINE_BOTH(iq4_xs_r4, iq4_xs, DEQUANT_SUPERBLOCK)
