/* Decoders of the ternary types. Layouts: dequant/blocks.h. */
#include "dequant/blocks.h"
#include "dequant/slots.h"
#include "dequant/small_floats.h"

/*
 * Writes `digits` digits of each of `n` bytes: all first digits, then all second ones and so on.
 * `n` and `digits` are constants at every call, which lets the compiler unroll.
 */
static inline void base3_digits(const uint8_t *restrict bytes, size_t n, size_t digits, float d,
                                float *restrict out)
{
    unsigned power = 1;

    for (size_t k = 0; k < digits; k++) {
        for (size_t i = 0; i < n; i++) {
            unsigned fraction = (bytes[i] * power) & 255;
            int digit = (int)((fraction * 3) >> 8);

            out[k * n + i] = (float)(digit - 1) * d;
        }
        power *= 3;
    }
}

static inline void tq1_0_block(const struct dequant_tq1_0 *restrict block, float *restrict out)
{
    float d = dequant_f16_to_f32(block->d);

    base3_digits(block->wide, 32, 5, d, out);
    base3_digits(block->narrow, 16, 5, d, out + 160);
    base3_digits(block->tail, 4, 4, d, out + 240);
}

static inline void tq2_0_block(const struct dequant_tq2_0 *restrict block, float *restrict out)
{
    float d = dequant_f16_to_f32(block->d);

    for (size_t s = 0; s < DEQUANT_SUPERBLOCK / 32; s++) {
        const uint8_t *q = &block->qs[32 * (s / 4)];
        size_t shift = 2 * (s % 4);

        for (size_t i = 0; i < 32; i++)
            out[32 * s + i] = (float)(((q[i] >> shift) & 3) - 1) * d;
    }
}

DEQUANT_DEFINE_DECODER(tq1_0, DEQUANT_SUPERBLOCK)
DEQUANT_DEFINE_DECODER(tq2_0, DEQUANT_SUPERBLOCK)
