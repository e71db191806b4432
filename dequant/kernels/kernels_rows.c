/*
 * Conversion of rows of interleaved types, and of a few types of forks, to types of ggml with the
 * same values. Most bits only change places; some types code their signs in another way.
 */
#include "dequant/fork_blocks.h"
#include "dequant/ik_k_blocks.h"
#include "dequant/iq_blocks.h"
#include "dequant/kernels/convert_rows.h"

/* ---- One scale per block ---- */

/* Word r of row k, and all four of them. */
#define RUN_BYTES(block) sizeof((block)->qs[0][0])
#define RUN_WORD(block, k, r)                                                                      \
    simd_u32(&(block)->qs[4UL * (r) / RUN_BYTES(block)][k][4UL * (r) % RUN_BYTES(block)])
#define RUN_WORDS(block, k)                                                                        \
    (words)                                                                                        \
    {                                                                                              \
        RUN_WORD(block, k, 0), RUN_WORD(block, k, 1), RUN_WORD(block, k, 2), RUN_WORD(block, k, 3) \
    }

/* `flipped` are the bits of a byte that the type stores inverted. */
#define DEFINE_RUNS(type, plain, scale, flipped)                                                   \
    CONVERT_AND_DECODE(type, plain, 1, DEQUANT_BLOCK)                                              \
    {                                                                                              \
        out->scale = block->scale[k];                                                              \
        put_words(out->qs, RUN_WORDS(block, k) ^ EACH_BYTE(flipped));                              \
    }
DEFINE_RUNS(q4_0_4_4, q4_0, d, 0x88)
DEFINE_RUNS(q4_0_4_8, q4_0, d, 0x88)
DEFINE_RUNS(q4_0_8_8, q4_0, d, 0x88)
DEFINE_RUNS(q4_0_r8, q4_0, d, 0)
DEFINE_RUNS(mxfp4_r8, mxfp4, e, 0)

CONVERT(iq4_nl_r4, iq4_nl, 1)
{
    out->d = block->d[k];
    put_nibbles_16(&block->qs, k, out->qs);
}

CONVERT(q5_0_r4, q5_0, 1)
{
    out->d = block->d[k];
    put_nibbles_16(&block->qs, k, out->qs);
    for (size_t h = 0; h < 2; h++) {
        const words bits = get_bits(&block->qh, k, q5_0_places[h]);

        out->qh[2 * h] = (uint8_t)(gather_bits(bits[0]) | gather_bits(bits[1]) << 4);
        out->qh[2 * h + 1] = (uint8_t)(gather_bits(bits[2]) | gather_bits(bits[3]) << 4);
    }
}

CONVERT_AND_DECODE(q8_0_r8, q8_0, 1, DEQUANT_BLOCK)
{
    out->d = block->d[k];
    for (size_t r = 0; r < DEQUANT_BLOCK / 4; r++)
        memcpy(out->qs + 4 * r, block->qs[r][k], 4);
}

CONVERT(bf16_r16, bf16, 2)
{
    out[0].bits = block->bits[k][0];
    out[1].bits = block->bits[k][1];
}

/* ---- K types ---- */

CONVERT_AND_DECODE(q2_k_r4, q2_k, 1, DEQUANT_SUPERBLOCK)
{
    out->d = block->d[k];
    out->m = block->m[k];
    put_column_8(block->scales, k, out->scales);
    put_column_8(block->scales + 8, k, out->scales + 8);
    put_pairs(block->qs, k, out->qs);
}

CONVERT_AND_DECODE(q3_k_r4, q3_k, 1, DEQUANT_SUPERBLOCK)
{
    put_column_8(block->scales.low, k, out->scales_low);
    put_word(out->scales_high, 0, get_column_4(block->scales.high, k));
    out->d = block->d[k];
    put_pairs(block->qs, k, out->qs);
    put_bits(block->qh, k, q3_k_places, out->qh);
}

static inline void deinterleave_k_scales(const struct dequant_r4_k_scales *restrict in, size_t k,
                                         struct dequant_k_scales *restrict out)
{
    const uint64_t both = get_column_8(in->low, k);
    const uint32_t low = (uint32_t)both, high = get_column_4(in->high, k);

    put_word(out->scales, 0,
             (low & EACH_BYTE(15)) | (high & EACH_BYTE(0x03)) << 4 | (high & EACH_BYTE(0x30)) << 2);
    put_word(out->mins, 0,
             (low >> 4 & EACH_BYTE(15)) | (high & EACH_BYTE(0x0c)) << 2 | (high & EACH_BYTE(0xc0)));
    put_word(out->low, 0, (uint32_t)(both >> 32));
}

CONVERT_AND_DECODE(q4_k_r4, q4_k, 1, DEQUANT_SUPERBLOCK)
{
    out->d = block->d[k];
    out->m = block->m[k];
    deinterleave_k_scales(&block->scales, k, &out->scales);
    put_nibbles_32(block->qs, k, out->qs);
}

CONVERT_AND_DECODE(q5_k_r4, q5_k, 1, DEQUANT_SUPERBLOCK)
{
    out->d = block->d[k];
    out->m = block->m[k];
    deinterleave_k_scales(&block->scales, k, &out->scales);
    put_nibbles_32(block->qs, k, out->qs);
    put_bits(block->qh, k, q5_k_places, out->qh);
}

CONVERT_AND_DECODE(q6_k_r4, q6_k, 1, DEQUANT_SUPERBLOCK)
{
    out->d = block->d[k];
    for (size_t s = 0; s < DEQUANT_N_16; s++)
        out->scales[s] = block->scales[s][k];
    for (size_t i = 0; i < 4; i++) {
        const struct dequant_r4_nibbles *qs = &block->qs[i / 2 * 4];
        const struct dequant_r4_pairs *qh = &block->qh[i / 2 * 4];
        const size_t h = i % 2;
        uint8_t *low = out->ql + i / 2 * 64 + h * 16;

        put_words(low, get_nibbles(&qs[0], k, h) | get_nibbles(&qs[2], k, h) << 4);
        put_words(low + 32, get_nibbles(&qs[1], k, h) | get_nibbles(&qs[3], k, h) << 4);
        put_words(out->qh + 16 * i,
                  get_q6_k_pairs(&qh[0], k, h) | get_q6_k_pairs(&qh[1], k, h) << 2 |
                      get_q6_k_pairs(&qh[2], k, h) << 4 | get_q6_k_pairs(&qh[3], k, h) << 6);
    }
}

/* A superblock with an f16 scale is eight blocks of Q8_0 with the same scale. */
CONVERT_AND_DECODE(q8_k_r8, q8_0, 8, DEQUANT_SUPERBLOCK)
{
    for (size_t b = 0; b < DEQUANT_N_32; b++) {
        out[b].d = block->d[k];
        for (size_t r = 0; r < 8; r++)
            memcpy(out[b].qs + 4 * r, block->qs[8 * b + r][k], 4);
    }
}

CONVERT_AND_DECODE(q8_k_r16, q8_0, 8, DEQUANT_SUPERBLOCK)
{
    for (size_t b = 0; b < DEQUANT_N_32; b++) {
        out[b].d = block->d[k];
        for (size_t r = 0; r < 8; r++) {
            const uint32_t word = simd_u32(block->qs[8 * b + r][k]) ^ EACH_BYTE(128);

            memcpy(out[b].qs + 4 * r, &word, sizeof word);
        }
    }
}

/* ---- IQ types ---- */

/* The scale, in the top four bits, and four times seven signs of block b, as in IQ2_XXS. */
static inline uint32_t scale_and_signs(const struct dequant_r4_signs *signs, size_t b, size_t k)
{
    const uint32_t bytes = simd_u32(signs->bytes[b][k]), s = bytes & EACH_BYTE(254);
    const uint32_t plain = (s ^ s >> 1) & EACH_BYTE(127), scale = bytes & EACH_BYTE(1);

    return (plain & 0x7f) | (plain >> 1 & 0x7f << 7) | (plain >> 2 & 0x7f << 14) |
           (plain >> 3 & 0x7f << 21) | gather_bits(scale) << 28;
}

CONVERT_AND_DECODE(iq2_xxs_r4, iq2_xxs, 1, DEQUANT_SUPERBLOCK)
{
    out->d = block->d[k];
    for (size_t b = 0; b < DEQUANT_N_32; b++) {
        const uint32_t group[2] = {simd_u32(block->qs[b][k]), scale_and_signs(&block->signs, b, k)};

        memcpy(out->groups[b], group, sizeof group);
    }
}

CONVERT_AND_DECODE(iq2_xs_r4, iq2_xs, 1, DEQUANT_SUPERBLOCK)
{
    out->d = block->d[k];
    for (size_t b = 0; b < DEQUANT_N_32; b++) {
        uint64_t runs, signs;

        memcpy(&runs, block->runs[b][k], sizeof runs);
        signs = runs & 0xfe00fe00fe00fe00;
        signs = (signs ^ signs << 1) & 0xfe00fe00fe00fe00;
        runs = (runs & 0x01ff01ff01ff01ff) | signs;
        memcpy(&out->runs[4 * b], &runs, sizeof runs);
        out->scales[b] = block->scales[b][k];
    }
}

CONVERT_AND_DECODE(iq2_s_r4, iq2_s, 1, DEQUANT_SUPERBLOCK)
{
    out->d = block->d[k];
    for (size_t b = 0; b < DEQUANT_N_32; b++) {
        memcpy(out->qs + 4 * b, block->qs[b][k], 4);
        memcpy(out->signs + 4 * b, block->signs[b][k], 4);
        out->qh[b] = block->qh[b][k];
        out->scales[b] = block->scales[b][k];
    }
}

CONVERT_AND_DECODE(iq3_xxs_r4, iq3_xxs, 1, DEQUANT_SUPERBLOCK)
{
    out->d = block->d[k];
    for (size_t b = 0; b < DEQUANT_N_32; b++) {
        memcpy(out->qs + 8 * b, block->qs[b][k], 8);
        put_word(out->signs[b], 0, scale_and_signs(&block->signs, b, k));
    }
}

/* Bit 8j+i becomes bit 4i+j. */
static inline words transpose_signs(words w)
{
    w = exchange_bits(exchange_bits(w, 12, 0x0000f0f0), 6, 0x00cc00cc);
    return exchange_bits(exchange_bits(w, 3, 0x0a0a0a0a), 1, 0x22222222);
}

CONVERT_AND_DECODE(iq3_s_r4, iq3_s, 1, DEQUANT_SUPERBLOCK)
{
    out->d = block->d[k];
    for (size_t b = 0; b < DEQUANT_N_32; b++) {
        for (size_t i = 0; i < 4; i++) {
            out->qs[8 * b + i] = block->qs[b][i][0][k];
            out->qs[8 * b + 4 + i] = block->qs[b][i][1][k];
        }
        out->qh[b] = block->qh[b][k];
    }
    for (size_t b = 0; b < DEQUANT_N_32; b += 4) {
        const words signs = {simd_u32(block->signs[b][k]), simd_u32(block->signs[b + 1][k]),
                             simd_u32(block->signs[b + 2][k]), simd_u32(block->signs[b + 3][k])};

        put_words(out->signs + 4 * b, transpose_signs(signs));
    }
    for (size_t j = 0; j < 4; j++) {
        const size_t shift = j / 2 * 4, first = 2 * j % 4;

        out->scales[j] = (uint8_t)((block->scales[first][k] >> shift & 15) |
                                   (block->scales[first + 1][k] >> shift & 15) << 4);
    }
}

/* The codes of 16 elements of row k in IQ4_XS_R8. */
static inline words get_r8_nibbles(const uint8_t runs[2][DEQUANT_R8_ROWS][4], size_t k)
{
    const uint32_t a = simd_u32(runs[0][k]), b = simd_u32(runs[1][k]);

    return (words){a, a, b, b} >> (words){0, 4, 0, 4} & EACH_BYTE(15);
}

/* Move the four pairs of bits of a byte apart, to bits 0, 4, 8 and 12. */
static inline unsigned spread_pairs(unsigned pairs)
{
    pairs = (pairs | pairs << 4) & 0x0f0f;
    return (pairs | pairs << 2) & 0x3333;
}

CONVERT_AND_DECODE(iq4_xs_r8, iq4_xs, 1, DEQUANT_SUPERBLOCK)
{
    const unsigned even = spread_pairs(block->scales_high[0][k]);
    const unsigned odd = spread_pairs(block->scales_high[1][k]);

    out->d = block->d[k];
    out->scales_high = (uint16_t)(even | odd << 2);
    for (size_t i = 0; i < 2; i++) {
        const unsigned first = block->scales_low[2 * i][k],
                       second = block->scales_low[2 * i + 1][k];

        out->scales_low[i] = (uint8_t)((first & 15) | (second & 15) << 4);
        out->scales_low[i + 2] = (uint8_t)(first >> 4 | (second & 240));
    }
    for (size_t s = 0; s < DEQUANT_N_32; s++)
        put_words(out->qs[s], get_r8_nibbles(block->qs[s], k) | get_r8_nibbles(&block->qs[s][2], k)
                                                                    << 4);
}

/* ---- Types of forks ---- */

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

/* Names of structs for types that share one. */
#define dequant_bare_iq1_bn dequant_iq1_bn
#define dequant_bare_iq2_bn dequant_iq2_bn

/* ±d is (8 ± 1 - 8) * d. */
CONVERT(q1_0_g32, q4_0, 1)
{
    out->d = block->d;
    for (size_t i = 0; i < DEQUANT_BLOCK / 2; i++) {
        const unsigned low = (block->qs[i / 8] >> (i % 8)) & 1;
        const unsigned high = (block->qs[i / 8 + 2] >> (i % 8)) & 1;

        out->qs[i] = (uint8_t)(0x77 + 2 * low + 32 * high);
    }
}

CONVERT(pq2_0, q2_0, 2)
{
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

CONVERT(ptq1_0, q2_0, 2)
{
    out[0].d = out[1].d = block->d;
    for (size_t e = 0; e < DEQUANT_PRISM_BLOCK; e++)
        put_two_bits(out, e, ptq1_0_digit(block, e));
}

CONVERT_AND_DECODE(iq2_tn, tq2_0, 1, DEQUANT_SUPERBLOCK)
{
    out->d = block->d;
    memcpy(out->qs, block->qs, sizeof out->qs);
}

/* IQ1_BN and IQ2_BN had no scale at first: d is 1. */
enum { F16_ONE = 0x3c00 };

CONVERT_AND_DECODE(bare_iq1_bn, q2_0, 1, DEQUANT_BN_BLOCK)
{
    out->d = F16_ONE;
    for (size_t e = 0; e < DEQUANT_BN_BLOCK; e++) {
        const size_t i = e % 16;

        put_two_bits(out, e,
                     i < 15 ? digit(block->fives[e / 16][i / 5], 4 - i % 5)
                            : digit(block->rest, 4 - e / 16));
    }
}

CONVERT_AND_DECODE(bare_iq2_bn, q2_0, 1, DEQUANT_BN_BLOCK)
{
    out->d = F16_ONE;
    for (size_t e = 0; e < DEQUANT_BN_BLOCK; e++)
        put_two_bits(out, e, (block->qs[e % 16] >> (e / 16 * 2)) & 3);
}

DEFINE_RUNS(iq4_nl_4_4, iq4_nl, d, 0)

CONVERT_AND_DECODE(q4_0_r4, q4_0, 1, DEQUANT_BLOCK)
{
    out->d = block->d[k];
    put_nibbles_16(&block->qs, k, out->qs);
}

CONVERT_AND_DECODE(q8_0_r4, q8_0, 1, DEQUANT_BLOCK)
{
    out->d = block->d[k];
    for (size_t r = 0; r < 4; r++) {
        memcpy(out->qs + 4 * r, block->qs[r][0][k], 4);
        memcpy(out->qs + 16 + 4 * r, block->qs[r][1][k], 4);
    }
}

CONVERT_AND_DECODE(iq4_xs_r4, iq4_xs, 1, DEQUANT_SUPERBLOCK)
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
