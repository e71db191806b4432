/*
 * Unpacking of the types made of 4-bit floats in vectors whose lanes are rows. dequant/blocks.h has
 * the layouts.
 */
#include "dequant/blocks.h"
#include "dequant/kernels/panel_sink.h"
#include "dequant/kernels/words.h"

/* The doubled floats of dequant_doubled_e2m1, above their zero point. */
static const uint8_t integers[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

INLINE words low_nibbles(words v)
{
    return words_and(v, words_all(0x0f0f0f0f));
}

/*
 * 2^(e - 128), as the product of two powers of 2 of about the same size: neither is out of range,
 * and a subnormal product is exact.
 */
INLINE simd_floats half_e8m0(words e)
{
    const words half = words_right(e, 1), rest = words_sub(e, half), bias = words_all(127 - 64);

    return simd_mul(words_as_floats(words_left(words_add(half, bias), 23)),
                    words_as_floats(words_left(words_add(rest, bias), 23)));
}

SINK_UNPACKER(mxfp4, 8, 32)
{
    for (size_t b = 0; b < sink->n_stages; b++) {
        const uint8_t *block = (const uint8_t *)rows + b * sizeof(struct dequant_mxfp4);
        words v[4];

        words_load_16(block, row_bytes, v);
        simd_store(sink->panel->d[b], half_e8m0(words_byte(v[0], 0)));
        words_load_16(block + offsetof(struct dequant_mxfp4, qs), row_bytes, v);
        UNROLL
        for (size_t i = 0; i < 4; i++) {
            sink_put(kind, sink, i, words_lookup(integers, low_nibbles(v[i])));
            sink_put(kind, sink, 4 + i, words_lookup(integers, low_nibbles(words_right(v[i], 4))));
        }
        sink_end_stage(kind, sink);
    }
}

/* See dequant_half_ue4m3_to_f32. As a half, whose bias is 15, the number is 2^8 times too small. */
INLINE simd_floats half_ue4m3(words scale)
{
    /* Bit 8 is 0 for 0x7f alone. */
    const words bit =
        words_and(words_add(words_xor(scale, words_all(0x7f)), words_all(0xff)), words_all(0x100));
    const words number =
        words_and(scale, words_and(words_sub(bit, words_right(bit, 8)), words_all(0x7f)));

    return simd_mul(words_f16(words_left(number, 7)), simd_all_floats(0x1p7F));
}

SINK_UNPACKER(nvfp4, DEQUANT_PANEL_ELEMENTS / DEQUANT_NVFP4_BLOCK, 64)
{
    enum { N_SCALES = DEQUANT_NVFP4_BLOCK / 16 };

    for (size_t b = 0; b < sink->n_stages; b++) {
        const uint8_t *block = (const uint8_t *)rows + b * sizeof(struct dequant_nvfp4);
        words v[12];

        /* The scales, then eight words of integers; the last load ends with the block. */
        words_load_16(block, row_bytes, v);
        words_load_16(block + 16, row_bytes, v + 4);
        words_load_16(block + sizeof(struct dequant_nvfp4) - 16, row_bytes, v + 8);
        for (size_t s = 0; s < N_SCALES; s++)
            simd_store(sink->panel->d[N_SCALES * b + s], half_ue4m3(words_byte(v[0], s)));
        UNROLL
        for (size_t i = 0; i < 8; i++) {
            const words both = i < 7 ? v[1 + i] : v[11];
            const size_t step = i / 2 * 4 + i % 2;

            sink_put(kind, sink, step, words_lookup(integers, low_nibbles(both)));
            sink_put(kind, sink, step + 2,
                     words_lookup(integers, low_nibbles(words_right(both, 4))));
        }
        sink_end_stage(kind, sink);
    }
}
