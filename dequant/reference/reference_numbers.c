/* Plain numbers: their decoders, encoders and dot products; and encoders of blocks. */
#include "dequant/blocks.h"
#include "dequant/dot.h"
#include "dequant/slots.h"
#include "dequant/small_floats.h"

#include <math.h>

/* Define the decoder of a type, whose block is one number, by the conversion of its member to
 * float. */
#define DEFINE_DECODER(type, member, to_float)                                                     \
    void dequant_scalar_##type(const void *restrict blocks, float *restrict out, size_t n_blocks,  \
                               struct dequant_row row)                                             \
    {                                                                                              \
        const struct dequant_##type *block = blocks;                                               \
                                                                                                   \
        (void)row;                                                                                 \
        for (size_t i = 0; i < n_blocks; i++)                                                      \
            out[i] = to_float(block[i].member);                                                    \
    }

DEFINE_DECODER(f32, bits, dequant_float_of_bits)
DEFINE_DECODER(f16, bits, dequant_f16_to_f32)
DEFINE_DECODER(bf16, bits, dequant_bf16_to_f32)
/* A number that does not fit is rounded as in IEEE 754: a large double becomes an infinity. */
DEFINE_DECODER(f64, value, (float))
DEFINE_DECODER(i8, value, (float))
DEFINE_DECODER(i16, value, (float))
DEFINE_DECODER(i32, value, (float))
DEFINE_DECODER(i64, value, (float))

/* Define the dot products of a type by its numbers and their conversion to float. */
#define DEFINE_DOT(name, number, to_float)                                                         \
    void dequant_scalar_##name(const void *w, size_t w_stride_bytes, size_t n_rows,                \
                               const float *x, size_t x_stride, size_t n_columns, size_t n,        \
                               float *out, size_t out_stride)                                      \
    {                                                                                              \
        for (size_t r = 0; r < n_rows; r++) {                                                      \
            const number *left = (const void *)((const char *)w + r * w_stride_bytes);             \
                                                                                                   \
            for (size_t c = 0; c < n_columns; c++) {                                               \
                const float *right = x + c * x_stride;                                             \
                float sums[DEQUANT_DOT_LANES] = {0};                                               \
                                                                                                   \
                for (size_t i = 0; i < n; i++)                                                     \
                    sums[i % DEQUANT_DOT_LANES] =                                                  \
                        fmaf(to_float(left[i]), right[i], sums[i % DEQUANT_DOT_LANES]);            \
                out[c * out_stride + r] += dequant_dot_sum(sums);                                  \
            }                                                                                      \
        }                                                                                          \
    }

DEFINE_DOT(dot_f32, float, )
DEFINE_DOT(dot_f16, uint16_t, dequant_f16_to_f32)
DEFINE_DOT(dot_bf16, uint16_t, dequant_bf16_to_f32)

/* Define the encoder of a type of 16 bits by its conversion. */
#define DEFINE_ENCODER(name, convert)                                                              \
    void dequant_scalar_##name(const void *restrict values, void *restrict out, size_t n)          \
    {                                                                                              \
        const uint8_t *from = values;                                                              \
        uint8_t *to = out;                                                                         \
                                                                                                   \
        for (size_t i = 0; i < n; i++) {                                                           \
            float value;                                                                           \
            uint16_t encoded;                                                                      \
                                                                                                   \
            memcpy(&value, from + i * sizeof value, sizeof value);                                 \
            encoded = convert(value);                                                              \
            memcpy(to + i * sizeof encoded, &encoded, sizeof encoded);                             \
        }                                                                                          \
    }

DEFINE_ENCODER(to_f16, dequant_f32_to_f16)
DEFINE_ENCODER(to_bf16, dequant_f32_to_bf16)

/* Read the numbers of a block, and get the first of the greatest magnitude; a NaN is greater. */
static float load_block(const uint8_t *from, float block[DEQUANT_BLOCK])
{
    uint32_t most = 0;
    float first = 0;

    memcpy(block, from, DEQUANT_BLOCK * sizeof *block);
    for (size_t i = 0; i < DEQUANT_BLOCK; i++) {
        const uint32_t magnitude = dequant_bits_of_float(block[i]) & 0x7fffffff;

        if (magnitude > most) {
            most = magnitude;
            first = block[i];
        }
    }
    return first;
}

void dequant_scalar_to_q8_0(const void *restrict values, void *restrict out, size_t n)
{
    struct dequant_q8_0 *to = out;
    const uint8_t *from = values;

    for (; n > 0; n -= DEQUANT_BLOCK, from += DEQUANT_BLOCK * sizeof(float), to++) {
        float block[DEQUANT_BLOCK];
        const float scale = fabsf(load_block(from, block)) / 127;
        const float inverse = dequant_inverse_scale(scale);

        to->d = dequant_f32_to_f16(scale);
        for (size_t i = 0; i < DEQUANT_BLOCK; i++)
            to->qs[i] = inverse == 0 ? 0 : (int8_t)roundf(block[i] * inverse);
    }
}

/* The nearest of the integers 0 to 15 that stand for -8 to 7; a tie goes up. */
static unsigned q4_of(float value)
{
    const int q = (int)(value + 8.5F);

    return q > 15 ? 15U : (unsigned)q;
}

void dequant_scalar_to_q4_0(const void *restrict values, void *restrict out, size_t n)
{
    const size_t half = DEQUANT_BLOCK / 2;
    struct dequant_q4_0 *to = out;
    const uint8_t *from = values;

    for (; n > 0; n -= DEQUANT_BLOCK, from += DEQUANT_BLOCK * sizeof(float), to++) {
        float block[DEQUANT_BLOCK];
        const float scale = load_block(from, block) / -8;
        const float inverse = dequant_inverse_scale(scale);

        to->d = dequant_f32_to_f16(scale);
        for (size_t i = 0; i < half; i++) {
            const unsigned low = inverse == 0 ? 8 : q4_of(block[i] * inverse);
            const unsigned high = inverse == 0 ? 8 : q4_of(block[half + i] * inverse);

            to->qs[i] = (uint8_t)(low | high << 4);
        }
    }
}
