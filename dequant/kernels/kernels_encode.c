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

/*
 * Scales of blocks are computed together: a block alone would wait for its greatest magnitude and
 * two divisions.
 */
enum { AT_ONCE = 32 };

#define BLOCK_BYTES (DEQUANT_BLOCK * sizeof(float))

/* Divide the scales, and compute dequant_inverse_scale() of each. */
INLINE void compute_scales(float scales[AT_ONCE], float divisor, float inverses[AT_ONCE])
{
    for (size_t i = 0; i < AT_ONCE; i += FLOAT_WIDTH) {
        float_vector v;
        int_vector inverse;

        memcpy(&v, scales + i, sizeof v);
        v /= divisor;
        memcpy(scales + i, &v, sizeof v);
        inverse = (int_vector)(1 / v);
        inverse &= (inverse & 0x7f800000) != 0x7f800000;
        memcpy(inverses + i, &inverse, sizeof inverse);
    }
}

typedef float scale_finder(const uint8_t *from);
typedef void block_writer(struct block block, float scale, float inverse, void *out);

/* Encode n_blocks of floats, with what `find` returns divided by `divisor` as their scales. */
INLINE void encode(const uint8_t *from, uint8_t *out, size_t n_blocks, size_t out_bytes,
                   scale_finder *find, float divisor, block_writer *write)
{
    for (size_t n; n_blocks > 0; n_blocks -= n) {
        float scales[AT_ONCE] = {0}, inverses[AT_ONCE];

        n = n_blocks < AT_ONCE ? n_blocks : AT_ONCE;
        for (size_t i = 0; i < n; i++)
            scales[i] = find(from + i * BLOCK_BYTES);
        compute_scales(scales, divisor, inverses);
        for (size_t i = 0; i < n; i++, from += BLOCK_BYTES, out += out_bytes)
            write(load_block(from), scales[i], inverses[i], out);
    }
}

INLINE float find_q8_0(const uint8_t *from)
{
    return dequant_float_of_bits(greatest_of(load_block(from)));
}

INLINE void write_q8_0(struct block block, float scale, float inverse, void *out)
{
    struct dequant_q8_0 *to = out;
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

void SIMD_NAME(to_q8_0)(const void *restrict values, void *restrict out, size_t n)
{
    encode(values, out, n / DEQUANT_BLOCK, sizeof(struct dequant_q8_0), find_q8_0, 127, write_q8_0);
}

/* The integers 0 to 15 of sixteen floats. */
INLINE simd_bytes q4_of(simd_floats v, simd_floats factor)
{
    const simd_floats sums = simd_add_floats(simd_mul(v, factor), simd_all_floats(8.5f));
    const simd_bytes q = simd_truncate_to_bytes(sums);

    return q + simd_at_least(q, 16); /* 16 becomes 15 */
}

/* The first value of the greatest magnitude, but 0 without a sign. */
INLINE float find_q4_0(const uint8_t *from)
{
    const struct block block = load_block(from);
    const uint32_t greatest = greatest_of(block);
    const unsigned at = magnitudes_find(block.low, block.high, greatest);
    float most;

    memcpy(&most, from + at * sizeof most, sizeof most);
    return greatest == 0 ? 0 : most;
}

INLINE void write_q4_0(struct block block, float scale, float inverse, void *out)
{
    struct dequant_q4_0 *to = out;
    simd_bytes low = simd_all(8), high = low;

    if (__builtin_expect(inverse != 0, 1)) {
        low = q4_of(block.low, simd_all_floats(inverse));
        high = q4_of(block.high, simd_all_floats(inverse));
    }
    to->d = simd_to_f16(scale);
    simd_store_bytes(to->qs, low | simd_shift_left(high, 4));
}

void SIMD_NAME(to_q4_0)(const void *restrict values, void *restrict out, size_t n)
{
    encode(values, out, n / DEQUANT_BLOCK, sizeof(struct dequant_q4_0), find_q4_0, -8, write_q4_0);
}
