/*
 * The vectors of the kernels: 16 bytes that hold the integers of 16 elements, and functions that
 * turn them into 16 floats. Every kernel set is compiled from the same sources, with DEQUANT_SET as
 * its name (avx2, avx512, neon or scalar) and the compiler options for it. The set "scalar" has
 * decoders alone, and the baseline of the architecture.
 */
#pragma once

#include "dequant/kernels/specialize.h"
#include "dequant/slots.h"
#include "dequant/small_floats.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SIMD_JOIN2(set, name) dequant_##set##_##name
#define SIMD_JOIN(set, name)  SIMD_JOIN2(set, name)
/* The function of this set for a slot, see dequant/slots.h. */
#define SIMD_NAME(name) SIMD_JOIN(DEQUANT_SET, name)

/*
 * simd_bytes is a vector of 16 uint8_t, simd_floats a set of FLOAT_PARTS parts that hold 16 floats.
 * The operators of GCC and clang compute with bytes and with parts. What has no operator differs
 * between the CPUs and stands in simd_x86.h, which describes each function, and simd_neon.h.
 */
#if defined(__AVX2__)
#include "dequant/kernels/simd_x86.h"
#elif defined(__ARM_NEON)
#include "dequant/kernels/simd_neon.h"
#else
#include "dequant/kernels/simd_portable.h"
#define SIMD_IS_PORTABLE 1
#endif

/* Return false if an f16 scale is NaN or infinite. */
INLINE bool simd_is_finite(uint16_t half)
{
    return (half & 0x7c00) != 0x7c00;
}

/*
 * Begins the decoder of one `block`, a struct dequant_LAYOUT, to `out`, and defines the kernel of
 * the type as a loop over it. Blocks for which `is_regular` is false go to the scalar set, so that
 * all sets give the same NaNs.
 *
 * Pass true if a value is one product. If it is a sum or made by flipping signs, pass
 * simd_is_finite() of its scales, `block->d` for instance: with NaN and infinity, the order of
 * operands and the place of a sign would show in the result.
 */
#define SIMD_DECODER_OF(type, layout, elements, is_regular)                                        \
    SIMD_DECODER_HEAD(type, layout);                                                               \
                                                                                                   \
    void SIMD_NAME(type)(const void *restrict blocks, float *restrict out, size_t n_blocks,        \
                         struct dequant_row row)                                                   \
    {                                                                                              \
        const struct dequant_##layout *block = blocks;                                             \
                                                                                                   \
        for (size_t i = 0; i < n_blocks; i++, block++, out += (elements)) {                        \
            if (SIMD_TAKES(is_regular))                                                            \
                type##_kernel(block, row, out);                                                    \
            else                                                                                   \
                dequant_scalar_##type(block, out, 1, row);                                         \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    SIMD_DECODER_HEAD(type, layout)

#define SIMD_DECODER_HEAD(type, layout)                                                            \
    INLINE void type##_kernel(const struct dequant_##layout *block,                                \
                              struct dequant_row row __attribute__((unused)), float *out)

/* For a type whose layout has the same name. */
#define SIMD_DECODER(type, elements, is_regular) SIMD_DECODER_OF(type, type, elements, is_regular)

#if defined(__AVX2__)
#define SIMD_TAKES(is_regular) __builtin_expect(is_regular, 1)
#else
#define SIMD_TAKES(is_regular) ((is_regular) || true)
#endif

/* A number at any address. */
#define SIMD_NUMBER(bits)                                                                          \
    INLINE uint##bits##_t simd_u##bits(const void *from)                                           \
    {                                                                                              \
        uint##bits##_t value;                                                                      \
                                                                                                   \
        memcpy(&value, from, sizeof value);                                                        \
        return value;                                                                              \
    }
SIMD_NUMBER(16)
SIMD_NUMBER(32)
SIMD_NUMBER(64)
#undef SIMD_NUMBER

/* ---- 16 bytes ---- */

INLINE simd_bytes simd_load(const void *from)
{
    simd_bytes v;

    memcpy(&v, from, sizeof v);
    return v;
}

INLINE void simd_store_bytes(void *to, simd_bytes v)
{
    memcpy(to, &v, sizeof v);
}

/* Two or four numbers, the first in the lowest bytes. */
INLINE simd_bytes simd_two(uint64_t low, uint64_t high)
{
    typedef uint64_t two __attribute__((vector_size(16)));

    return (simd_bytes)(two){low, high};
}

INLINE simd_bytes simd_four(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    typedef uint32_t four __attribute__((vector_size(16)));

    return (simd_bytes)(four){a, b, c, d};
}

/* Eight bytes, and zeros above. */
INLINE simd_bytes simd_load_8(const void *from)
{
    return simd_two(simd_u64(from), 0);
}

INLINE simd_bytes simd_all(int byte)
{
    return (uint8_t)byte - (simd_bytes){0};
}

/* Interleave the lower (upper) halves of a and b by 1, 2, 4 or 8 bytes. */
#define SIMD_ZIP(name, number, ...)                                                                \
    INLINE simd_bytes simd_zip_##name(simd_bytes a, simd_bytes b)                                  \
    {                                                                                              \
        typedef number numbers __attribute__((vector_size(16)));                                   \
                                                                                                   \
        return (simd_bytes)__builtin_shufflevector((numbers)a, (numbers)b, __VA_ARGS__);           \
    }
SIMD_ZIP(low_1, uint8_t, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
SIMD_ZIP(high_1, uint8_t, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
SIMD_ZIP(low_2, uint16_t, 0, 8, 1, 9, 2, 10, 3, 11)
SIMD_ZIP(high_2, uint16_t, 4, 12, 5, 13, 6, 14, 7, 15)
SIMD_ZIP(low_4, uint32_t, 0, 4, 1, 5)
SIMD_ZIP(low_8, uint64_t, 0, 2)
SIMD_ZIP(high_8, uint64_t, 1, 3)
#undef SIMD_ZIP

#if !defined(__AVX512F__)

INLINE simd_bytes simd_keep_where(simd_bytes v, uint16_t bits)
{
    return v & simd_mask(bits);
}

INLINE simd_bytes simd_negate_where(simd_bytes v, uint16_t bits)
{
    const simd_bytes mask = simd_mask(bits);

    return (v ^ mask) - mask;
}

#endif

/* The lower and the upper four bits of each byte. */
INLINE simd_bytes simd_low_nibbles(simd_bytes v)
{
    return v & 15;
}

INLINE simd_bytes simd_high_nibbles(simd_bytes v)
{
    return simd_shift_right(v, 4);
}

/* The 16 nibbles of eight bytes, the lower one of each byte first. */
INLINE simd_bytes simd_nibbles(const uint8_t bytes[8])
{
    const simd_bytes both = simd_load_8(bytes);

    return simd_zip_low_1(simd_low_nibbles(both), simd_high_nibbles(both));
}

/* 16 where a bit is set, else 0: the fifth bits of 16 elements. */
INLINE simd_bytes simd_fifth_bits(const uint8_t bits[2])
{
    return simd_keep_where(simd_all(16), simd_u16(bits));
}

/* n bits of each byte, those from bit `from` moved to bit `to`. */
INLINE simd_bytes simd_bits(simd_bytes v, size_t from, size_t n, size_t to)
{
    const simd_bytes moved =
        from < to ? simd_shift_left(v, (int)(to - from)) : simd_shift_right(v, (int)(from - to));

    return moved & (uint8_t)(((1U << n) - 1) << to);
}

/* ---- 16 floats ---- */

typedef struct {
    float_vector v[FLOAT_PARTS];
} simd_floats;

/* Return a set of parts: `expression` is part i. */
#define SIMD_EACH(type, expression)                                                                \
    type result;                                                                                   \
                                                                                                   \
    UNROLL                                                                                         \
    for (size_t i = 0; i < FLOAT_PARTS; i++)                                                       \
        result.v[i] = (expression);                                                                \
    return result

INLINE simd_floats simd_all_floats(float value)
{
    SIMD_EACH(simd_floats, float_all(value));
}

/* Eight times `low`, then eight times `high`. */
INLINE simd_floats simd_halves(float low, float high)
{
#if defined(__AVX512F__)
    return (simd_floats){{_mm512_mask_blend_ps(0xff00, float_all(low), float_all(high))}};
#else
    SIMD_EACH(simd_floats, float_all(i < FLOAT_PARTS / 2 ? low : high));
#endif
}

/* The 16 floats of signed bytes. */
INLINE simd_floats simd_floats_of(simd_bytes bytes)
{
    SIMD_EACH(simd_floats, __builtin_convertvector(part_of_signed(bytes, i), float_vector));
}

INLINE simd_floats simd_mul(simd_floats a, simd_floats b)
{
    SIMD_EACH(simd_floats, a.v[i] * b.v[i]);
}

INLINE simd_floats simd_add_floats(simd_floats a, simd_floats b)
{
    SIMD_EACH(simd_floats, a.v[i] + b.v[i]);
}

INLINE simd_floats simd_sub_floats(simd_floats a, simd_floats b)
{
    SIMD_EACH(simd_floats, a.v[i] - b.v[i]);
}

INLINE void simd_store(float *out, simd_floats floats)
{
    UNROLL
    for (size_t i = 0; i < FLOAT_PARTS; i++)
        float_store(out + i * FLOAT_WIDTH, floats.v[i]);
}

#if !defined(SIMD_IS_PORTABLE)

/* ---- Loads and stores of 16 numbers at any address ---- */

INLINE float_vector part_load_i16(const void *from)
{
    return __builtin_convertvector(part_load_shorts(from), float_vector);
}

INLINE float_vector part_load_bf16(const void *from)
{
    return (float_vector)(part_load_shorts(from) << 16);
}

INLINE float_vector part_load_i32(const void *from)
{
    return __builtin_convertvector((int_vector)float_load(from), float_vector);
}

INLINE simd_floats simd_load_i8(const void *from)
{
    return simd_floats_of(simd_load(from));
}

#define SIMD_LOAD(type, number, load_part)                                                         \
    INLINE simd_floats simd_load_##type(const void *from)                                          \
    {                                                                                              \
        const char *bytes = from;                                                                  \
                                                                                                   \
        SIMD_EACH(simd_floats, load_part(bytes + i * FLOAT_WIDTH * sizeof(number)));               \
    }
SIMD_LOAD(floats, float, float_load)
SIMD_LOAD(f16, uint16_t, part_load_f16)
SIMD_LOAD(bf16, uint16_t, part_load_bf16)
SIMD_LOAD(f64, double, part_load_f64)
SIMD_LOAD(i16, int16_t, part_load_i16)
SIMD_LOAD(i32, int32_t, part_load_i32)
SIMD_LOAD(i64, int64_t, part_load_i64)
#undef SIMD_LOAD

INLINE void simd_store_f16(uint8_t *to, simd_floats floats)
{
    for (size_t i = 0; i < FLOAT_PARTS; i++)
        part_store_f16(to + i * FLOAT_WIDTH * sizeof(uint16_t), floats.v[i]);
}

#endif

/* ---- Writing 16 floats ---- */

/* Write 16 floats: q * scale. */
INLINE void simd_put(float *out, simd_bytes q, float scale)
{
    simd_store(out, simd_mul(simd_floats_of(q), simd_all_floats(scale)));
}

/* q * scale + offset */
INLINE void simd_put_plus(float *out, simd_bytes q, float scale, float offset)
{
    const simd_floats product = simd_mul(simd_floats_of(q), simd_all_floats(scale));

    simd_store(out, simd_add_floats(product, simd_all_floats(offset)));
}

/* q * scale - min */
INLINE void simd_put_less(float *out, simd_bytes q, float scale, float min)
{
    const simd_floats product = simd_mul(simd_floats_of(q), simd_all_floats(scale));

    simd_store(out, simd_sub_floats(product, simd_all_floats(min)));
}
