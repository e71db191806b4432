/* Decoders of the plain number types: a block is one number. */
#include "dequant/blocks.h"
#include "dequant/slots.h"
#include "dequant/small_floats.h"

/* Define the decoder of a type by the conversion of a block's member to float. */
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
