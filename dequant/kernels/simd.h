/*
 * The vectors of the kernels: 16 bytes that hold the integers of 16 elements, and functions that
 * turn them into 16 floats. Every kernel set is compiled from the same sources, with DEQUANT_SET as
 * its name (avx2, avx512 or neon) and the compiler options for it.
 */
#ifndef GGUFS_DEQUANT_KERNELS_SIMD_H
#define GGUFS_DEQUANT_KERNELS_SIMD_H

#include "dequant/kernels/specialize.h"
#include "dequant/slots.h"
#include "dequant/small_floats.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIMD_JOIN2(set, name) dequant_##set##_##name
#define SIMD_JOIN(set, name)  SIMD_JOIN2(set, name)
/* The function of this set for a slot, see dequant/slots.h. */
#define SIMD_NAME(name) SIMD_JOIN(DEQUANT_SET, name)

/*
 * A simd_*.h header offers these types and functions; simd_x86.h describes them:
 *
 * - simd_bytes: simd_load, simd_load_8, simd_store_bytes, simd_all, simd_two, simd_four, simd_and,
 * simd_or, simd_xor, simd_add, simd_sub, simd_shift_left, simd_shift_right, simd_at_least,
 * simd_look_up, simd_look_up_long, simd_keep_where, simd_negate_where, simd_zip_low_1, _2, _4 and
 * _8, simd_zip_high_1, _2 and _8.
 * - simd_floats: simd_all_floats, simd_halves, simd_floats_of, simd_mul, simd_add_floats,
 *   simd_sub_floats, simd_load_floats, simd_load_f16, _bf16, _i16, _i32, _i64 and _f64, simd_store,
 *   simd_store_f16 and _bf16.
 * - simd_f16 and simd_to_f16 for one number.
 */
#if defined(__AVX2__)
#include "dequant/kernels/simd_x86.h"
#elif defined(__ARM_NEON)
#include "dequant/kernels/simd_neon.h"
#endif

/* Return false if an f16 scale is NaN or infinite. */
static inline bool simd_is_finite(uint16_t half)
{
    return (half & 0x7c00) != 0x7c00;
}

/*
 * Defines the kernel of a type as a loop over the static function TYPE_kernel, which decodes one
 * struct dequant_LAYOUT, `block`. Blocks for which `is_regular` is false go to the reference.
 *
 * Pass true if a value is one product. If it is a sum or made by flipping signs, pass
 * simd_is_finite() of its scales, `block->d` for instance: with NaN and infinity, the order of
 * operands and the place of a sign would show in the result.
 */
#define SIMD_DEFINE_LAYOUT(type, layout, elements, is_regular)                                     \
    void SIMD_NAME(type)(const void *restrict blocks, float *restrict out, size_t n_blocks,        \
                         struct dequant_row row)                                                   \
    {                                                                                              \
        const struct dequant_##layout *block = blocks;                                             \
                                                                                                   \
        for (size_t i = 0; i < n_blocks; i++, block++, out += (elements)) {                        \
            if (__builtin_expect(is_regular, 1))                                                   \
                type##_kernel(block, out);                                                         \
            else                                                                                   \
                dequant_scalar_##type(block, out, 1, row);                                         \
        }                                                                                          \
    }

/* The same for a type whose layout has its name. */
#define SIMD_DEFINE(type, elements, is_regular) SIMD_DEFINE_LAYOUT(type, type, elements, is_regular)

/*
 * The same for a type with row headers or interleaved rows: TYPE_kernel gets the row as well. It
 * has no `is_regular`, because the values of all these types are one product so far.
 */
#define SIMD_DEFINE_ROWS(type, elements)                                                           \
    void SIMD_NAME(type)(const void *restrict blocks, float *restrict out, size_t n_blocks,        \
                         struct dequant_row row)                                                   \
    {                                                                                              \
        const struct dequant_##type *block = blocks;                                               \
                                                                                                   \
        for (size_t i = 0; i < n_blocks; i++)                                                      \
            type##_kernel(&block[i], row, out + i * (elements));                                   \
    }

static inline uint16_t simd_u16(const void *from)
{
    uint16_t value;

    memcpy(&value, from, sizeof value);
    return value;
}

static inline uint32_t simd_u32(const void *from)
{
    uint32_t value;

    memcpy(&value, from, sizeof value);
    return value;
}

static inline uint64_t simd_u64(const void *from)
{
    uint64_t value;

    memcpy(&value, from, sizeof value);
    return value;
}

static inline simd_floats simd_load_i8(const void *from)
{
    return simd_floats_of(simd_load(from));
}

/* The lower and the upper four bits of each byte. */
static inline simd_bytes simd_low_nibbles(simd_bytes v)
{
    return simd_and(v, simd_all(15));
}

static inline simd_bytes simd_high_nibbles(simd_bytes v)
{
    return simd_shift_right(v, 4);
}

/* n bits of each byte, those from bit `from` moved to bit `to`. */
static inline simd_bytes simd_bits(simd_bytes v, size_t from, size_t n, size_t to)
{
    const simd_bytes moved =
        from < to ? simd_shift_left(v, (int)(to - from)) : simd_shift_right(v, (int)(from - to));

    return simd_and(moved, simd_all(((1 << n) - 1) << to));
}

/* Write 16 floats: q * scale. */
static inline void simd_put(float *out, simd_bytes q, float scale)
{
    simd_store(out, simd_mul(simd_floats_of(q), simd_all_floats(scale)));
}

/* q * scale + offset */
static inline void simd_put_plus(float *out, simd_bytes q, float scale, float offset)
{
    const simd_floats product = simd_mul(simd_floats_of(q), simd_all_floats(scale));

    simd_store(out, simd_add_floats(product, simd_all_floats(offset)));
}

/* q * scale - min */
static inline void simd_put_less(float *out, simd_bytes q, float scale, float min)
{
    const simd_floats product = simd_mul(simd_floats_of(q), simd_all_floats(scale));

    simd_store(out, simd_sub_floats(product, simd_all_floats(min)));
}

#endif
