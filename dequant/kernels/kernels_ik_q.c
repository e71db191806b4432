/* Kernels of Q6_0, Q8_KV and the ternary types of ik_llama.cpp. */
#include "dequant/ik_k_blocks.h"
#include "dequant/kernels/simd.h"

/*
 * Which byte of an IQ1_BN block has digit j of an element, by the group i of 16 elements, j, and
 * the element within the group; 15, where the vector of the digits has zeros, for elements with
 * another digit of their byte.
 */
#define NO        15
#define FIRST(b)  (b), NO, NO, NO, NO, (b) + 1, NO, NO, NO, NO, (b) + 2, NO, NO, NO, NO
#define SECOND(b) NO, (b), NO, NO, NO, NO, (b) + 1, NO, NO, NO, NO, (b) + 2, NO, NO, NO
#define THIRD(b)  NO, NO, (b), NO, NO, NO, NO, (b) + 1, NO, NO, NO, NO, (b) + 2, NO, NO
#define FOURTH(b) NO, NO, NO, (b), NO, NO, NO, NO, (b) + 1, NO, NO, NO, NO, (b) + 2, NO
#define FIFTH(b)  NO, NO, NO, NO, (b), NO, NO, NO, NO, (b) + 1, NO, NO, NO, NO, (b) + 2

static const uint8_t places[4][5][16] = {
    {{FIRST(0), 12}, {SECOND(0), NO}, {THIRD(0), NO}, {FOURTH(0), NO}, {FIFTH(0), NO}},
    {{FIRST(3), NO}, {SECOND(3), 12}, {THIRD(3), NO}, {FOURTH(3), NO}, {FIFTH(3), NO}},
    {{FIRST(6), NO}, {SECOND(6), NO}, {THIRD(6), 12}, {FOURTH(6), NO}, {FIFTH(6), NO}},
    {{FIRST(9), NO}, {SECOND(9), NO}, {THIRD(9), NO}, {FOURTH(9), 12}, {FIFTH(9), NO}},
};

/* 3 * byte >> 8: 0 below 86, 2 from 171 on. */
INLINE simd_bytes top_digits(simd_bytes v)
{
    return 0 - (simd_at_least(v, 86) + simd_at_least(v, 171));
}

SIMD_DECODER(iq1_bn, DEQUANT_BN_BLOCK, true)
{
    const uint8_t *bytes = block->fives[0];
    const float d = dequant_f16_row_scale(row);
    simd_bytes v = simd_two(simd_u64(bytes), simd_u64(bytes + 5) >> 24), digits[5];

    for (size_t j = 5; j-- > 0; v = v + v + v)
        digits[j] = top_digits(v);
    for (size_t i = 0; i < 4; i++) {
        simd_bytes q = simd_look_up(digits[0], simd_load(places[i][0]));

        for (size_t j = 1; j < 5; j++)
            q = q | simd_look_up(digits[j], simd_load(places[i][j]));
        simd_put(out + 16 * i, q - 1, d);
    }
}

SIMD_DECODER(i2_s, DEQUANT_I2_S_BLOCK, true)
{
    const float d = dequant_f32_row_scale(row);
    const simd_bytes three = simd_all(3), one = simd_all(1);

    for (size_t half = 0; half < 2; half++) {
        const simd_bytes q = simd_load(block->qs + 16 * half);

        for (size_t i = 0; i < 4; i++)
            simd_put(out + 32 * i + 16 * half, (simd_shift_right(q, 6 - 2 * (int)i) & three) - one,
                     d);
    }
}

SIMD_DECODER(iq2_bn, DEQUANT_BN_BLOCK, true)
{
    const float d = dequant_f32_row_scale(row);
    const simd_bytes q = simd_load(block->qs), three = simd_all(3), one = simd_all(1);

    for (size_t i = 0; i < 4; i++)
        simd_put(out + 16 * i, (simd_shift_right(q, 2 * (int)i) & three) - one, d);
}

SIMD_DECODER(q6_0, DEQUANT_BLOCK, true)
{
    const simd_bytes q = simd_load(block->qs), qh = simd_load_8(block->qh);
    const simd_bytes high = simd_zip_low_8(qh, simd_shift_right(qh, 4)), half = simd_all(32);
    const simd_bytes first = simd_shift_left(high & 3, 4);
    const simd_bytes second = simd_shift_left(high & 12, 2);
    const float d = simd_f16(block->d);

    simd_put(out, (simd_low_nibbles(q) | first) - half, d);
    simd_put(out + 16, (simd_high_nibbles(q) | second) - half, d);
}

SIMD_DECODER(q8_kv, DEQUANT_BLOCK, true)
{
    const float d = dequant_f32_row_scale(row);

    simd_put(out, simd_load(block->qs), d);
    simd_put(out + 16, simd_load(block->qs + 16), d);
}
