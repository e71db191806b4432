/*
 * Takes interleaved rows apart: NAME_deinterleave writes the block of row k in a stored block of
 * the type NAME as blocks of a plain type with the same values. Most bits only change places; some
 * types code their signs in another way.
 */
#ifndef GGUFS_DEQUANT_DEINTERLEAVE_H
#define GGUFS_DEQUANT_DEINTERLEAVE_H

#include "dequant/deinterleave_words.h"
#include "dequant/iq_blocks.h"

/* ---- One scale per block ---- */

/* Copy the runs of row k. `flips` is 0x88 if its nibbles are signed, else 0. */
#define COPY_RUNS(block, k, flips, to)                                                             \
    do {                                                                                           \
        for (size_t run = 0; run < sizeof(block)->qs / sizeof *(block)->qs; run++)                 \
            memcpy((to) + run * sizeof(block)->qs[run][k], (block)->qs[run][k],                    \
                   sizeof(block)->qs[run][k]);                                                     \
        for (size_t i = 0; i < 16; i++)                                                            \
            (to)[i] ^= (flips);                                                                    \
    } while (0)

static inline void q4_0_4_4_deinterleave(const struct dequant_q4_0_4_4 *restrict block, size_t k,
                                         struct dequant_q4_0 *restrict out)
{
    out->d = block->d[k];
    COPY_RUNS(block, k, 0x88, out->qs);
}

static inline void q4_0_4_8_deinterleave(const struct dequant_q4_0_4_8 *restrict block, size_t k,
                                         struct dequant_q4_0 *restrict out)
{
    out->d = block->d[k];
    COPY_RUNS(block, k, 0x88, out->qs);
}

static inline void q4_0_8_8_deinterleave(const struct dequant_q4_0_8_8 *restrict block, size_t k,
                                         struct dequant_q4_0 *restrict out)
{
    out->d = block->d[k];
    COPY_RUNS(block, k, 0x88, out->qs);
}

static inline void q4_0_r8_deinterleave(const struct dequant_q4_0_r8 *restrict block, size_t k,
                                        struct dequant_q4_0 *restrict out)
{
    out->d = block->d[k];
    COPY_RUNS(block, k, 0, out->qs);
}

static inline void mxfp4_r8_deinterleave(const struct dequant_mxfp4_r8 *restrict block, size_t k,
                                         struct dequant_mxfp4 *restrict out)
{
    out->e = block->e[k];
    COPY_RUNS(block, k, 0, out->qs);
}

static inline void iq4_nl_r4_deinterleave(const struct dequant_iq4_nl_r4 *restrict block, size_t k,
                                          struct dequant_iq4_nl *restrict out)
{
    out->d = block->d[k];
    put_nibbles_16(&block->qs, k, out->qs);
}

static inline void q5_0_r4_deinterleave(const struct dequant_q5_0_r4 *restrict block, size_t k,
                                        struct dequant_q5_0 *restrict out)
{
    out->d = block->d[k];
    put_nibbles_16(&block->qs, k, out->qs);
    for (size_t i = 0; i < 4; i++) { /* words 2i and 2i + 1 */
        const uint32_t low = bit_word(&block->qh, k, q5_0_places[2 * i]);
        const uint32_t high = bit_word(&block->qh, k, q5_0_places[2 * i + 1]);

        out->qh[i] = (uint8_t)(gather_bits(low) | gather_bits(high) << 4);
    }
}

static inline void q8_0_r8_deinterleave(const struct dequant_q8_0_r8 *restrict block, size_t k,
                                        struct dequant_q8_0 *restrict out)
{
    out->d = block->d[k];
    for (size_t r = 0; r < DEQUANT_BLOCK / 4; r++)
        memcpy(out->qs + 4 * r, block->qs[r][k], 4);
}

static inline void bf16_r16_deinterleave(const struct dequant_bf16_r16 *restrict block, size_t k,
                                         struct dequant_bf16 *restrict out)
{
    out[0].bits = block->bits[k][0];
    out[1].bits = block->bits[k][1];
}

/* ---- K types ---- */

static inline void q2_k_r4_deinterleave(const struct dequant_q2_k_r4 *restrict block, size_t k,
                                        struct dequant_q2_k *restrict out)
{
    out->d = block->d[k];
    out->m = block->m[k];
    for (size_t s = 0; s < DEQUANT_N_16; s++)
        out->scales[s] = block->scales[s][k];
    put_pairs(block->qs, k, out->qs);
}

static inline void q3_k_r4_deinterleave(const struct dequant_q3_k_r4 *restrict block, size_t k,
                                        struct dequant_q3_k *restrict out)
{
    unsigned scales[DEQUANT_N_16];

    for (size_t s = 0; s < DEQUANT_N_16; s++)
        scales[s] = scale_of(&block->scales, 4 * s + k);
    for (size_t s = 0; s < 8; s++)
        out->scales_low[s] = (uint8_t)((scales[s] & 15) | (scales[s + 8] & 15) << 4);
    for (size_t s = 0; s < 4; s++)
        out->scales_high[s] = (uint8_t)(scales[s] >> 4 | scales[s + 4] >> 4 << 2 |
                                        scales[s + 8] >> 4 << 4 | scales[s + 12] >> 4 << 6);
    out->d = block->d[k];
    put_pairs(block->qs, k, out->qs);
    put_bits(block->qh, k, q3_k_places, out->qh);
}

static inline void deinterleave_k_scales(const struct dequant_r4_k_scales *restrict in, size_t k,
                                         struct dequant_k_scales *restrict out)
{
    unsigned scales[8], mins[8];

    for (size_t s = 0; s < 8; s++) {
        const size_t n = 4 * s + k;
        const unsigned low = in->low[n], high = (unsigned)in->high[n % 16] >> (n / 16 * 4);

        scales[s] = (low & 15) | (high & 3) << 4;
        mins[s] = low >> 4 | (high >> 2 & 3) << 4;
    }
    for (size_t s = 0; s < 4; s++) {
        out->scales[s] = (uint8_t)(scales[s] | scales[s + 4] >> 4 << 6);
        out->mins[s] = (uint8_t)(mins[s] | mins[s + 4] >> 4 << 6);
        out->low[s] = (uint8_t)((scales[s + 4] & 15) | (mins[s + 4] & 15) << 4);
    }
}

static inline void q4_k_r4_deinterleave(const struct dequant_q4_k_r4 *restrict block, size_t k,
                                        struct dequant_q4_k *restrict out)
{
    out->d = block->d[k];
    out->m = block->m[k];
    deinterleave_k_scales(&block->scales, k, &out->scales);
    put_nibbles_32(block->qs, k, out->qs);
}

static inline void q5_k_r4_deinterleave(const struct dequant_q5_k_r4 *restrict block, size_t k,
                                        struct dequant_q5_k *restrict out)
{
    out->d = block->d[k];
    out->m = block->m[k];
    deinterleave_k_scales(&block->scales, k, &out->scales);
    put_nibbles_32(block->qs, k, out->qs);
    put_bits(block->qh, k, q5_k_places, out->qh);
}

static inline void q6_k_r4_deinterleave(const struct dequant_q6_k_r4 *restrict block, size_t k,
                                        struct dequant_q6_k *restrict out)
{
    out->d = block->d[k];
    for (size_t s = 0; s < DEQUANT_N_16; s++)
        out->scales[s] = block->scales[s][k];
    for (size_t h = 0; h < 2; h++) {
        const struct dequant_r4_nibbles *qs = &block->qs[4 * h];
        const struct dequant_r4_pairs *qh = &block->qh[4 * h];

        for (size_t t = 0; t < 8; t++) {
            put_word(out->ql, 16 * h + t, nibble_word(qs, k, t) | nibble_word(qs + 2, k, t) << 4);
            put_word(out->ql, 16 * h + 8 + t,
                     nibble_word(qs + 1, k, t) | nibble_word(qs + 3, k, t) << 4);
            put_word(out->qh, 8 * h + t,
                     q6_k_pair_word(qh, k, t) | q6_k_pair_word(qh + 1, k, t) << 2 |
                         q6_k_pair_word(qh + 2, k, t) << 4 | q6_k_pair_word(qh + 3, k, t) << 6);
        }
    }
}

/* A superblock with an f16 scale is eight blocks of Q8_0 with the same scale. */
static inline void q8_k_r8_deinterleave(const struct dequant_q8_k_r8 *restrict block, size_t k,
                                        struct dequant_q8_0 *restrict out)
{
    for (size_t b = 0; b < DEQUANT_N_32; b++) {
        out[b].d = block->d[k];
        for (size_t r = 0; r < 8; r++)
            memcpy(out[b].qs + 4 * r, block->qs[8 * b + r][k], 4);
    }
}

static inline void q8_k_r16_deinterleave(const struct dequant_q8_k_r16 *restrict block, size_t k,
                                         struct dequant_q8_0 *restrict out)
{
    for (size_t b = 0; b < DEQUANT_N_32; b++) {
        out[b].d = block->d[k];
        for (size_t r = 0; r < 8; r++) {
            const uint32_t word = get_word(block->qs[8 * b + r][k]) ^ EACH_BYTE(128);

            memcpy(out[b].qs + 4 * r, &word, sizeof word);
        }
    }
}

/* ---- IQ types ---- */

/* The scale, in the top four bits, and four times seven signs of block b, as in IQ2_XXS. */
static inline uint32_t scale_and_signs(const struct dequant_r4_signs *signs, size_t b, size_t k)
{
    const uint32_t bytes = get_word(signs->bytes[b][k]), s = bytes & EACH_BYTE(254);
    const uint32_t plain = (s ^ s >> 1) & EACH_BYTE(127), scale = bytes & EACH_BYTE(1);

    return (plain & 0x7f) | (plain >> 1 & 0x7f << 7) | (plain >> 2 & 0x7f << 14) |
           (plain >> 3 & 0x7f << 21) | gather_bits(scale) << 28;
}

static inline void iq2_xxs_r4_deinterleave(const struct dequant_iq2_xxs_r4 *restrict block,
                                           size_t k, struct dequant_iq2_xxs *restrict out)
{
    out->d = block->d[k];
    for (size_t b = 0; b < DEQUANT_N_32; b++) {
        const uint32_t words[2] = {get_word(block->qs[b][k]), scale_and_signs(&block->signs, b, k)};

        memcpy(out->groups[b], words, sizeof words);
    }
}

static inline void iq2_xs_r4_deinterleave(const struct dequant_iq2_xs_r4 *restrict block, size_t k,
                                          struct dequant_iq2_xs *restrict out)
{
    out->d = block->d[k];
    for (size_t b = 0; b < DEQUANT_N_32; b++) {
        for (size_t i = 0; i < 4; i++) {
            const unsigned run = block->runs[b][k][i], s = run & 0xfe00;

            out->runs[4 * b + i] = (uint16_t)((run & 0x01ff) | ((s ^ s << 1) & 0xfe00));
        }
        out->scales[b] = block->scales[b][k];
    }
}

static inline void iq2_s_r4_deinterleave(const struct dequant_iq2_s_r4 *restrict block, size_t k,
                                         struct dequant_iq2_s *restrict out)
{
    out->d = block->d[k];
    for (size_t b = 0; b < DEQUANT_N_32; b++) {
        memcpy(out->qs + 4 * b, block->qs[b][k], 4);
        memcpy(out->signs + 4 * b, block->signs[b][k], 4);
        out->qh[b] = block->qh[b][k];
        out->scales[b] = block->scales[b][k];
    }
}

static inline void iq3_xxs_r4_deinterleave(const struct dequant_iq3_xxs_r4 *restrict block,
                                           size_t k, struct dequant_iq3_xxs *restrict out)
{
    out->d = block->d[k];
    for (size_t b = 0; b < DEQUANT_N_32; b++) {
        memcpy(out->qs + 8 * b, block->qs[b][k], 8);
        put_word(out->signs[b], 0, scale_and_signs(&block->signs, b, k));
    }
}

/* Interleave the bits of the two halves of a word, the first one of the lower half. */
static inline uint32_t shuffle_bits(uint32_t x)
{
    uint32_t t;

    t = (x ^ x >> 8) & 0x0000ff00, x ^= t ^ t << 8;
    t = (x ^ x >> 4) & 0x00f000f0, x ^= t ^ t << 4;
    t = (x ^ x >> 2) & 0x0c0c0c0c, x ^= t ^ t << 2;
    t = (x ^ x >> 1) & 0x22222222, x ^= t ^ t << 1;
    return x;
}

static inline void iq3_s_r4_deinterleave(const struct dequant_iq3_s_r4 *restrict block, size_t k,
                                         struct dequant_iq3_s *restrict out)
{
    out->d = block->d[k];
    for (size_t b = 0; b < DEQUANT_N_32; b++) {
        for (size_t i = 0; i < 4; i++) {
            out->qs[8 * b + i] = block->qs[b][i][0][k];
            out->qs[8 * b + 4 + i] = block->qs[b][i][1][k];
        }
        out->qh[b] = block->qh[b][k];
    }
    /* Bit 8j+i becomes bit 4i+j. */
    for (size_t b = 0; b < DEQUANT_N_32; b++)
        put_word(out->signs, b, shuffle_bits(shuffle_bits(get_word(block->signs[b][k]))));
    for (size_t j = 0; j < 4; j++) {
        const size_t shift = j / 2 * 4, first = 2 * j % 4;

        out->scales[j] = (uint8_t)((block->scales[first][k] >> shift & 15) |
                                   (block->scales[first + 1][k] >> shift & 15) << 4);
    }
}

static inline void iq4_xs_r8_deinterleave(const struct dequant_iq4_xs_r8 *restrict block, size_t k,
                                          struct dequant_iq4_xs *restrict out)
{
    unsigned scales_high = 0;

    for (size_t s = 0; s < DEQUANT_N_32; s++) {
        scales_high |= scale_of(&block->scales, 8 * s + k) >> 4 << 2 * s;
        for (size_t t = 0; t < 4; t++) {
            const uint32_t first = get_word(block->qs[s][t / 2][k]) >> t % 2 * 4;
            const uint32_t second = get_word(block->qs[s][t / 2 + 2][k]) >> t % 2 * 4;

            put_word(out->qs[s], t, (first & EACH_BYTE(15)) | (second & EACH_BYTE(15)) << 4);
        }
    }
    for (size_t j = 0; j < 4; j++)
        out->scales_low[j] = (uint8_t)((scale_of(&block->scales, 16 * j + k) & 15) |
                                       (scale_of(&block->scales, 16 * j + 8 + k) & 15) << 4);
    out->scales_high = (uint16_t)scales_high;
    out->d = block->d[k];
}

/*
 * The types whose decoders take rows apart for those of the plain type: DO(set, type, plain type,
 * how many of its blocks make one of the type, elements of the type's block, bytes of a row
 * header).
 */
#define DEQUANT_INTERLEAVED(DO, set)                                                               \
    DO(set, q4_0_4_4, q4_0, 1, DEQUANT_BLOCK, 0)                                                   \
    DO(set, q4_0_4_8, q4_0, 1, DEQUANT_BLOCK, 0)                                                   \
    DO(set, q4_0_8_8, q4_0, 1, DEQUANT_BLOCK, 0)                                                   \
    DO(set, q4_0_r8, q4_0, 1, DEQUANT_BLOCK, 0)                                                    \
    DO(set, q8_0_r8, q8_0, 1, DEQUANT_BLOCK, 0)                                                    \
    DO(set, q2_k_r4, q2_k, 1, DEQUANT_SUPERBLOCK, 0)                                               \
    DO(set, q3_k_r4, q3_k, 1, DEQUANT_SUPERBLOCK, 0)                                               \
    DO(set, q4_k_r4, q4_k, 1, DEQUANT_SUPERBLOCK, 0)                                               \
    DO(set, q5_k_r4, q5_k, 1, DEQUANT_SUPERBLOCK, 0)                                               \
    DO(set, q6_k_r4, q6_k, 1, DEQUANT_SUPERBLOCK, 0)                                               \
    DO(set, iq2_xxs_r4, iq2_xxs, 1, DEQUANT_SUPERBLOCK, 0)                                         \
    DO(set, iq2_xs_r4, iq2_xs, 1, DEQUANT_SUPERBLOCK, 0)                                           \
    DO(set, iq3_xxs_r4, iq3_xxs, 1, DEQUANT_SUPERBLOCK, 0)                                         \
    DO(set, iq3_s_r4, iq3_s, 1, DEQUANT_SUPERBLOCK, 0)                                             \
    DO(set, iq2_s_r4, iq2_s, 1, DEQUANT_SUPERBLOCK, 0)                                             \
    DO(set, iq4_xs_r8, iq4_xs, 1, DEQUANT_SUPERBLOCK, 0)                                           \
    DO(set, bf16_r16, bf16, 2, 2, 0)                                                               \
    DO(set, mxfp4_r8, mxfp4, 1, DEQUANT_BLOCK, 0)                                                  \
    DO(set, q8_k_r16, q8_0, 8, DEQUANT_SUPERBLOCK, 0)                                              \
    DO(set, q8_k_r8, q8_0, 8, DEQUANT_SUPERBLOCK, 0)

/* Defines the decoder of such a type in a kernel set. */
#define DEQUANT_DEFINE_INTERLEAVED(set, type, plain, n_plain, elements, header_bytes)              \
    void dequant_##set##_##type(const void *restrict blocks, float *restrict out, size_t n_blocks, \
                                struct dequant_row row)                                            \
    {                                                                                              \
        enum { MOST = 4096 / ((n_plain) * sizeof(struct dequant_##plain)) };                       \
        const struct dequant_##type *block = blocks;                                               \
        const uint8_t *headers = row.headers;                                                      \
        const struct dequant_row alone = {                                                         \
            (header_bytes) ? headers + (size_t)(header_bytes)*row.index : NULL, 0};                \
        struct dequant_##plain taken[MOST][n_plain];                                               \
                                                                                                   \
        while (n_blocks > 0) {                                                                     \
            const size_t n = n_blocks < MOST ? n_blocks : MOST;                                    \
                                                                                                   \
            for (size_t i = 0; i < n; i++)                                                         \
                type##_deinterleave(block++, row.index, taken[i]);                                 \
            dequant_##set##_##plain(taken, out, n *(n_plain), alone);                              \
            out += n * (elements);                                                                 \
            n_blocks -= n;                                                                         \
        }                                                                                          \
    }

#endif
