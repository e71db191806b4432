/* Decoders of the types with interleaved rows. Layouts: dequant/ik_row_blocks.h. */
#include "dequant/deinterleave_ik.h"
#include "dequant/iq_grids.h"
#include "dequant/slots.h"
#include "dequant/small_floats.h"

DEQUANT_INTERLEAVED(DEQUANT_DEFINE_INTERLEAVED, scalar)
DEQUANT_DEFINE_INTERLEAVED(scalar, iq4_nl_r4, iq4_nl, 1, DEQUANT_BLOCK, 0)
DEQUANT_INTERLEAVED_IK(DEQUANT_DEFINE_INTERLEAVED, scalar)

/* Write q * d + m of 16 elements. */
static inline void put_16(words codes, float d, float m, float *restrict out)
{
    uint8_t q[16];

    put_words(q, codes);
    for (size_t i = 0; i < 16; i++)
        out[i] = d * (float)q[i] + m;
}

static inline void q5_0_r4_block(const struct dequant_q5_0_r4 *restrict block,
                                 struct dequant_row row, float *restrict out)
{
    const float d = dequant_f16_to_f32(block->d[row.index]);

    for (size_t h = 0; h < 2; h++)
        put_16(get_q5_0(block, row.index, h), d, -16 * d, out + 16 * h);
}

static inline void q6_0_r4_block(const struct dequant_q6_0_r4 *restrict block,
                                 struct dequant_row row, float *restrict out)
{
    const float d = dequant_f16_to_f32(block->d[row.index]);

    for (size_t h = 0; h < 2; h++)
        put_16(get_q6_0(block, row.index, h), d, -32 * d, out + 16 * h);
}

static inline void bf16_r16_block(const struct dequant_bf16_r16 *restrict block,
                                  struct dequant_row row, float *restrict out)
{
    out[0] = dequant_bf16_to_f32(block->bits[row.index][0]);
    out[1] = dequant_bf16_to_f32(block->bits[row.index][1]);
}

/* Eight elements of IQ1_S_R4 or IQ1_M_R4. */
static inline void put_run(unsigned q, float scale, bool is_minus, float *restrict out)
{
    int8_t values[8];

    memcpy(values, &dequant_iq1_grid[q], sizeof values);
    for (size_t i = 0; i < sizeof values; i++)
        out[i] = scale * ((float)values[i] + (is_minus ? -0.125F : 0.125F));
}

static inline void iq1_s_r4_block(const struct dequant_iq1_s_r4 *restrict block,
                                  struct dequant_row row, float *restrict out)
{
    const unsigned high = block->qh[row.index];
    const float scale = dequant_f16_row_scale(row) * (float)(2 * (high >> 12 & 7) + 1);

    for (size_t i = 0; i < 4; i++)
        put_run(block->qs[i][row.index] | (high >> 3 * i & 7) << 8, scale, high >> 15, out + 8 * i);
}

static inline void iq1_m_r4_block(const struct dequant_iq1_m_r4 *restrict block,
                                  struct dequant_row row, float *restrict out)
{
    const float d = dequant_f16_row_scale(row);

    for (size_t i = 0; i < 4; i++) {
        const unsigned high = (unsigned)block->qh[i / 2][row.index] >> i % 2 * 4;
        const unsigned scale = block->scales[row.index] >> i / 2 * 4 & 15;

        put_run(block->qs[i][row.index] | (high & 7) << 8, d * (float)scale, high & 8, out + 8 * i);
    }
}

DEQUANT_DEFINE_ROW_DECODER(q5_0_r4, DEQUANT_BLOCK)
DEQUANT_DEFINE_ROW_DECODER(q6_0_r4, DEQUANT_BLOCK)
DEQUANT_DEFINE_ROW_DECODER(iq1_s_r4, DEQUANT_BLOCK)
DEQUANT_DEFINE_ROW_DECODER(iq1_m_r4, DEQUANT_BLOCK)
DEQUANT_DEFINE_ROW_DECODER(bf16_r16, 2)
