/* Kernels of the old layouts. */
#include "dequant/kernels/simd.h"
#include "dequant/old_blocks.h"

/* The 32 numbers in the nibbles of 16 bytes, where the two of a byte are neighbours. */
struct pairs {
    simd_bytes first, second;
};

INLINE struct pairs pairs_of(simd_bytes q)
{
    const simd_bytes low = simd_low_nibbles(q), high = simd_high_nibbles(q);

    return (struct pairs){simd_zip_low_1(low, high), simd_zip_high_1(low, high)};
}

INLINE bool is_finite(float value)
{
    return (dequant_bits_of_float(value) & 0x7f800000) != 0x7f800000;
}

SIMD_DECODER_OF(era0_q4_0, old_q4_0, DEQUANT_BLOCK, true)
{
    const struct pairs q = pairs_of(simd_load(block->qs));

    simd_put(out, q.first - 8, block->d);
    simd_put(out + 16, q.second - 8, block->d);
}

SIMD_DECODER_OF(era0_q4_1, old_q4_1, DEQUANT_BLOCK, is_finite(block->d) && is_finite(block->m))
{
    const struct pairs q = pairs_of(simd_load(block->qs));

    simd_put_plus(out, q.first, block->d, block->m);
    simd_put_plus(out + 16, q.second, block->d, block->m);
}

SIMD_DECODER_OF(era0_q4_2, old_q4_2, DEQUANT_HALF_BLOCK, true)
{
    simd_put(out, simd_nibbles(block->qs) - 8, simd_f16(block->d));
}

SIMD_DECODER_OF(era0_q4_3, old_q4_3, DEQUANT_HALF_BLOCK,
                simd_is_finite(block->d) && simd_is_finite(block->m))
{
    simd_put_plus(out, simd_nibbles(block->qs), simd_f16(block->d), simd_f16(block->m));
}

SIMD_DECODER_OF(era0_q5_0, q5_0, DEQUANT_BLOCK, true)
{
    const struct pairs q = pairs_of(simd_load(block->qs));
    const float d = simd_f16(block->d);

    simd_put(out, (q.first | simd_fifth_bits(block->qh)) - 16, d);
    simd_put(out + 16, (q.second | simd_fifth_bits(block->qh + 2)) - 16, d);
}

SIMD_DECODER_OF(era0_q5_1, q5_1, DEQUANT_BLOCK,
                simd_is_finite(block->d) && simd_is_finite(block->m))
{
    const struct pairs q = pairs_of(simd_load(block->qs));
    const float d = simd_f16(block->d), m = simd_f16(block->m);

    simd_put_plus(out, q.first | simd_fifth_bits(block->qh), d, m);
    simd_put_plus(out + 16, q.second | simd_fifth_bits(block->qh + 2), d, m);
}

SIMD_DECODER_OF(era1_q4_0, old_q4_0, DEQUANT_BLOCK, true)
{
    const simd_bytes q = simd_load(block->qs), eight = simd_all(8);

    simd_put(out, simd_low_nibbles(q) - eight, block->d);
    simd_put(out + 16, simd_high_nibbles(q) - eight, block->d);
}

SIMD_DECODER_OF(era1_q4_1, old_q4_1, DEQUANT_BLOCK, is_finite(block->d) && is_finite(block->m))
{
    const simd_bytes q = simd_load(block->qs);

    simd_put_plus(out, simd_low_nibbles(q), block->d, block->m);
    simd_put_plus(out + 16, simd_high_nibbles(q), block->d, block->m);
}

SIMD_DECODER(old_q8_0, DEQUANT_BLOCK, true)
{
    simd_put(out, simd_load(block->qs), block->d);
    simd_put(out + 16, simd_load(block->qs + 16), block->d);
}
