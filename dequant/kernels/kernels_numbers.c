/* Kernels of the plain number types, and the encoders of F16 and BF16. */
#include "dequant/blocks.h"
#include "dequant/kernels/simd.h"

/* Define the kernel of a type by its load of 16 numbers; the reference decodes the rest. */
#define DEFINE_NUMBERS(type)                                                                       \
    void SIMD_NAME(type)(const void *restrict blocks, float *restrict out, size_t n_blocks,        \
                         struct dequant_row row)                                                   \
    {                                                                                              \
        const struct dequant_##type *numbers = blocks;                                             \
        size_t i = 0;                                                                              \
                                                                                                   \
        for (; i + 16 <= n_blocks; i += 16)                                                        \
            simd_store(out + i, simd_load_##type(numbers + i));                                    \
        dequant_scalar_##type(numbers + i, out + i, n_blocks - i, row);                            \
    }

DEFINE_NUMBERS(f16)
DEFINE_NUMBERS(bf16)
DEFINE_NUMBERS(f64)
DEFINE_NUMBERS(i8)
DEFINE_NUMBERS(i16)
DEFINE_NUMBERS(i32)
DEFINE_NUMBERS(i64)

void SIMD_NAME(f32)(const void *restrict blocks, float *restrict out, size_t n_blocks,
                    struct dequant_row row)
{
    (void)row;
    memcpy(out, blocks, n_blocks * sizeof *out);
}

/* Define an encoder by its store of 16 numbers; the reference encodes the rest. */
#define DEFINE_ENCODER(type)                                                                       \
    void SIMD_NAME(to_##type)(const void *restrict values, void *restrict out, size_t n)           \
    {                                                                                              \
        const uint8_t *from = values;                                                              \
        uint8_t *to = out;                                                                         \
                                                                                                   \
        for (; n >= 16; n -= 16, from += 64, to += 32)                                             \
            simd_store_##type(to, simd_load_floats(from));                                         \
        dequant_scalar_to_##type(from, to, n);                                                     \
    }

DEFINE_ENCODER(f16)
DEFINE_ENCODER(bf16)
