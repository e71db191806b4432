/* The encoders of blocks. dequant/types.h has the formulas. */
#include "dequant/blocks.h"
#include "dequant/kernels/simd_quantize.h"

/* Sixteen bytes, or the lower and upper half of them. */
#define HALF (DEQUANT_BLOCK / 2)

/* A block of floats. */
struct block {
    simd_floats low, high;
};

INLINE struct block load_block(const uint8_t *from)
{
    return (struct block){simd_load_floats(from), simd_load_floats(from + HALF * sizeof(float))};
}

INLINE uint32_t greatest_of(struct block block)
{
    return magnitudes_greatest(part_max(magnitudes_of(block.low), magnitudes_of(block.high)));
}

void SIMD_NAME(to_q8_0)(const void *restrict values, void *restrict out, size_t n)
{
    struct dequant_q8_0 *to = out;
    const uint8_t *from = values;

    for (; n > 0; n -= DEQUANT_BLOCK, from += DEQUANT_BLOCK * sizeof(float), to++) {
        const struct block block = load_block(from);
        const float scale = dequant_float_of_bits(greatest_of(block)) / 127;
        const float inverse = dequant_inverse_scale(scale);
        simd_bytes low = simd_all(0), high = low;

        if (__builtin_expect(inverse != 0, 1)) {
            const simd_floats factor = simd_all_floats(inverse);

            low = simd_round_away_to_bytes(simd_mul(block.low, factor));
            high = simd_round_away_to_bytes(simd_mul(block.high, factor));
        }
        to->d = simd_to_f16(scale);
        simd_store_bytes(to->qs, low);
        simd_store_bytes(to->qs + HALF, high);
    }
}

/* The integers 0 to 15 of sixteen floats. */
INLINE simd_bytes q4_of(simd_floats v, simd_floats factor)
{
    const simd_floats sums = simd_add_floats(simd_mul(v, factor), simd_all_floats(8.5f));
    const simd_bytes q = simd_truncate_to_bytes(sums);

    return q + simd_at_least(q, 16); /* 16 becomes 15 */
}

void SIMD_NAME(to_q4_0)(const void *restrict values, void *restrict out, size_t n)
{
    struct dequant_q4_0 *to = out;
    const uint8_t *from = values;

    for (; n > 0; n -= DEQUANT_BLOCK, from += DEQUANT_BLOCK * sizeof(float), to++) {
        const struct block block = load_block(from);
        const uint32_t greatest = greatest_of(block);
        const unsigned at = magnitudes_find(block.low, block.high, greatest);
        float most, scale, inverse;
        simd_bytes low = simd_all(8), high = low;

        /* The first of this magnitude, but 0 without a sign. */
        memcpy(&most, from + at * sizeof most, sizeof most);
        scale = (greatest == 0 ? 0 : most) / -8;
        inverse = dequant_inverse_scale(scale);
        if (__builtin_expect(inverse != 0, 1)) {
            low = q4_of(block.low, simd_all_floats(inverse));
            high = q4_of(block.high, simd_all_floats(inverse));
        }
        to->d = simd_to_f16(scale);
        simd_store_bytes(to->qs, low | simd_shift_left(high, 4));
    }
}
