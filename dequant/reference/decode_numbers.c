/* Decoders of the plain number types: a block is one number. */
#include "dequant/blocks.h"
#include "dequant/slots.h"
#include "dequant/small_floats.h"

static inline void f32_block(const struct dequant_f32 *restrict block, float *restrict out)
{
    *out = dequant_float_of_bits(block->bits);
}

static inline void f16_block(const struct dequant_f16 *restrict block, float *restrict out)
{
    *out = dequant_f16_to_f32(block->bits);
}

static inline void bf16_block(const struct dequant_bf16 *restrict block, float *restrict out)
{
    *out = dequant_bf16_to_f32(block->bits);
}

/* A number that does not fit is rounded as in IEEE 754: a large double becomes an infinity. */
static inline void f64_block(const struct dequant_f64 *restrict block, float *restrict out)
{
    *out = (float)block->value;
}

static inline void i8_block(const struct dequant_i8 *restrict block, float *restrict out)
{
    *out = (float)block->value;
}

static inline void i16_block(const struct dequant_i16 *restrict block, float *restrict out)
{
    *out = (float)block->value;
}

static inline void i32_block(const struct dequant_i32 *restrict block, float *restrict out)
{
    *out = (float)block->value;
}

static inline void i64_block(const struct dequant_i64 *restrict block, float *restrict out)
{
    *out = (float)block->value;
}

DEQUANT_DEFINE_DECODER(f32, DEQUANT_NUMBER)
DEQUANT_DEFINE_DECODER(f16, DEQUANT_NUMBER)
DEQUANT_DEFINE_DECODER(bf16, DEQUANT_NUMBER)
DEQUANT_DEFINE_DECODER(f64, DEQUANT_NUMBER)
DEQUANT_DEFINE_DECODER(i8, DEQUANT_NUMBER)
DEQUANT_DEFINE_DECODER(i16, DEQUANT_NUMBER)
DEQUANT_DEFINE_DECODER(i32, DEQUANT_NUMBER)
DEQUANT_DEFINE_DECODER(i64, DEQUANT_NUMBER)
