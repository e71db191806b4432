/* Kernels of the trellis types of ik_llama.cpp. */
#include "dequant/ik_kt_blocks.h"
#include "dequant/iq_grids.h"
#include "dequant/kernels/words.h"

/* Eight lanes of a, then eight of b. */
INLINE words words_two(uint32_t a, uint32_t b)
{
#if defined(__AVX512F__)
    return (words){{(simd_words)_mm512_mask_set1_epi32(_mm512_set1_epi32((int)a), 0xff00, (int)b)}};
#else
    SIMD_EACH(words, (i < FLOAT_PARTS / 2 ? a : b) - (simd_words){0});
#endif
}

/* Four lanes of each. */
INLINE words words_four(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
#if defined(__AVX512F__)
    const __m512i two = (__m512i)words_two(a, c).v[0];

    return (words){{(simd_words)_mm512_mask_set1_epi32(_mm512_mask_set1_epi32(two, 0x00f0, (int)b),
                                                       0xf000, (int)d)}};
#elif defined(__AVX2__)
    return (words){{(simd_words){a, a, a, a, b, b, b, b}, (simd_words){c, c, c, c, d, d, d, d}}};
#else
    return (words){
        {a - (simd_words){0}, b - (simd_words){0}, c - (simd_words){0}, d - (simd_words){0}}};
#endif
}

/* Magnitudes of signed numbers. */
INLINE words words_abs(words v)
{
    SIMD_EACH(words, (simd_words)part_abs((int_vector)v.v[i]));
}

/* 16 bytes, one in each lane. */
INLINE words words_of_bytes(simd_bytes bytes)
{
    SIMD_EACH(words, part_of_unsigned(bytes, i));
}

/* The values of states, -126 to 126. */
INLINE words words_trellis_values(words states)
{
    SIMD_EACH(words, part_sum_bytes(states.v[i] & DEQUANT_TRELLIS_BITS) - 126);
}

/* The factors that make states of a seed: a power for each value of the run. */
#define POWER_1  DEQUANT_TRELLIS_FACTOR
#define POWER_2  (POWER_1 * POWER_1)
#define POWER_3  (POWER_2 * POWER_1)
#define POWER_4  (POWER_2 * POWER_2)
#define POWERS_4 POWER_1, POWER_2, POWER_3, POWER_4
#define POWERS_8 POWERS_4, POWER_4 *POWER_1, POWER_4 *POWER_2, POWER_4 *POWER_3, POWER_4 *POWER_4

static const uint32_t powers_8[16] = {POWERS_8, POWERS_8};
static const uint32_t powers_4[16] = {POWERS_4, POWERS_4, POWERS_4, POWERS_4};

/* The values of two runs of eight. */
INLINE words two_runs(uint32_t first_seed, uint32_t second_seed)
{
    const words states =
        words_two(first_seed + DEQUANT_TRELLIS_OFFSET, second_seed + DEQUANT_TRELLIS_OFFSET);

    return words_trellis_values(words_mul(states, words_load(powers_8)));
}

INLINE void put(float *out, words values, float scale)
{
    simd_store(out, simd_mul(words_to_floats(values), simd_all_floats(scale)));
}

SIMD_DECODER(iq1_kt, DEQUANT_SUPERBLOCK, true)
{
    const simd_bytes low[2] = {simd_load(block->seeds_low), simd_load(block->seeds_low + 16)};
    const simd_bytes both = simd_load(block->seeds_high);
    const simd_bytes high[2] = {simd_low_nibbles(both), simd_high_nibbles(both)};
    const float d = dequant_f32_row_scale(row);
    uint16_t seeds[DEQUANT_SUPERBLOCK / 8]; /* without bit 12 */

    for (size_t i = 0; i < 2; i++) {
        simd_store_bytes(seeds + 16 * i, simd_zip_low_1(low[i], high[i]));
        simd_store_bytes(seeds + 16 * i + 8, simd_zip_high_1(low[i], high[i]));
    }
    for (size_t i = 0; i < DEQUANT_SUPERBLOCK / 8; i += 2) {
        const uint32_t scale = block->scales[i / 4];
        const uint32_t tops = scale >> (4 + i % 4);

        put(out + 8 * i,
            two_runs(seeds[i] | (tops & 1) << 12, seeds[i + 1] | ((tops >> 1) & 1) << 12),
            d * (float)dequant_iq4_values[scale & 15]);
    }
}

SIMD_DECODER(iq2_kt, DEQUANT_SUPERBLOCK, true)
{
    const float d = dequant_f32_row_scale(row) * DEQUANT_IQ2_KT_FACTOR;

    for (size_t i = 0; i < DEQUANT_SUPERBLOCK / 8; i += 2)
        put(out + 8 * i, two_runs(block->seeds[i], block->seeds[i + 1]),
            d * (float)dequant_iq4_values[dequant_far_nibble(block->scales, i / 4)]);
}

SIMD_DECODER(iq3_kt, DEQUANT_SUPERBLOCK, true)
{
    const float d = dequant_f32_row_scale(row) * DEQUANT_IQ3_KT_FACTOR;

    for (size_t i = 0; i < DEQUANT_SUPERBLOCK / 8; i += 2) {
        const float scale = d * (float)dequant_far_nibble(block->scales, i / 4);
        const words bytes = words_of_bytes(simd_load(block->signs + 8 * (i % 4)));
        const words signs = words_and(words_left(bytes, 31 - (int)(i / 4)), words_all(0x80000000));
        const words scales = words_xor(words_all(dequant_bits_of_float(scale)), signs);
        const words values = words_abs(two_runs(block->seeds[i], block->seeds[i + 1]));

        simd_store(out + 8 * i, simd_mul(words_to_floats(values), words_as_floats(scales)));
    }
}

SIMD_DECODER(iq4_kt, DEQUANT_SUPERBLOCK, true)
{
    const float d = dequant_f32_row_scale(row);
    uint16_t seeds[DEQUANT_SUPERBLOCK / 4]; /* bits 0 to 11 */

    for (size_t i = 0; i < 4; i++) {
        const simd_bytes low = simd_load(block->seeds_low + 16 * i);
        const simd_bytes both = simd_load(block->seeds_high + 16 * (i % 2));
        const simd_bytes high = i < 2 ? simd_low_nibbles(both) : simd_high_nibbles(both);

        simd_store_bytes(seeds + 16 * i, simd_zip_low_1(low, high));
        simd_store_bytes(seeds + 16 * i + 8, simd_zip_high_1(low, high));
    }
    for (size_t i = 0; i < DEQUANT_SUPERBLOCK / 4; i += 4) {
        const uint32_t word = block->words[i / 8], tops = word >> (8 + 3 * (i % 8));
        const uint32_t base = DEQUANT_TRELLIS_OFFSET + ((word & 1) << 15);
        const words states = words_four((seeds[i] | (tops & 7) << 12) + base,
                                        (seeds[i + 1] | ((tops >> 3) & 7) << 12) + base,
                                        (seeds[i + 2] | ((tops >> 6) & 7) << 12) + base,
                                        (seeds[i + 3] | ((tops >> 9) & 7) << 12) + base);

        put(out + 4 * i, words_trellis_values(words_mul(states, words_load(powers_4))),
            d * (float)((int)((word >> 1) & 127) - 64));
    }
}
