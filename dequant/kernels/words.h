/* Sixteen 32-bit lanes, one for each row of a panel, for unpacking. */
#pragma once

#include "dequant/kernels/simd.h"

/*
 * Return the pointer, hidden from the optimizer, which would otherwise keep the addresses of all
 * rows in registers and run out of them.
 */
INLINE const uint8_t *words_hide(const void *pointer)
{
    __asm__("" : "+r"(pointer));
    return pointer;
}

typedef struct {
    simd_words v[FLOAT_PARTS];
} words;

/* Lanes as vectors of numbers of 8 and of 16 bits. */
typedef uint8_t words_bytes __attribute__((vector_size(FLOAT_WIDTH * sizeof(uint32_t))));
typedef uint16_t words_pairs __attribute__((vector_size(FLOAT_WIDTH * sizeof(uint32_t))));
typedef int16_t words_signed_pairs __attribute__((vector_size(FLOAT_WIDTH * sizeof(uint32_t))));

INLINE words words_all(uint32_t value)
{
    SIMD_EACH(words, value - (simd_words){0});
}

INLINE words words_load(const uint32_t from[16])
{
    SIMD_EACH(words, (simd_words)float_load(from + i * FLOAT_WIDTH));
}

INLINE void words_store(void *to, words v)
{
    UNROLL
    for (size_t i = 0; i < FLOAT_PARTS; i++)
        float_store((float *)to + i * FLOAT_WIDTH, (float_vector)v.v[i]);
}

/* Compute in lanes, or in numbers of 8 or 16 bits; of products the lower halves. */
#define WORDS_OPERATOR(name, numbers, operator)                                                    \
    INLINE words words_##name(words a, words b)                                                    \
    {                                                                                              \
        SIMD_EACH(words, (simd_words)((numbers)a.v[i] operator(numbers) b.v[i]));                  \
    }
WORDS_OPERATOR(and, simd_words, &)
WORDS_OPERATOR(or, simd_words, |)
WORDS_OPERATOR(xor, simd_words, ^)
WORDS_OPERATOR(add, simd_words, +)
WORDS_OPERATOR(sub, simd_words, -)
WORDS_OPERATOR(mul, simd_words, *)
WORDS_OPERATOR(add_bytes, words_bytes, +)
WORDS_OPERATOR(mul_pairs, words_pairs, *)
#undef WORDS_OPERATOR

/* Shift each lane as an unsigned number. */
INLINE words words_right(words v, int n)
{
    SIMD_EACH(words, v.v[i] >> n);
}

INLINE words words_left(words v, int n)
{
    SIMD_EACH(words, v.v[i] << n);
}

/* The floats that the lanes hold the bits of. */
INLINE simd_floats words_as_floats(words v)
{
    SIMD_EACH(simd_floats, (float_vector)v.v[i]);
}

/* Signed numbers. */
INLINE simd_floats words_to_floats(words v)
{
    SIMD_EACH(simd_floats, __builtin_convertvector((int_vector)v.v[i], float_vector));
}

#if !defined(SIMD_IS_PORTABLE)

/* table[i] for each byte i, 0 to 15. */
INLINE words words_lookup(const uint8_t table[16], words v)
{
    SIMD_EACH(words, part_look_up(part_repeat(simd_load(table)), v.v[i]));
}

/* The floats of the lower halves, as f16. */
INLINE simd_floats words_f16(words v)
{
    SIMD_EACH(simd_floats, part_of_f16(v.v[i]));
}

INLINE simd_floats words_negated(simd_floats v)
{
    SIMD_EACH(simd_floats, -v.v[i]);
}

/* Load 16 bytes of each row: lane r of out[i] gets bytes 4i to 4i + 3 of row r. */
INLINE void words_load_16(const void *rows, size_t row_bytes, words out[4])
{
    const uint8_t *bytes = words_hide(rows);

    UNROLL
    for (size_t i = 0; i < FLOAT_PARTS; i++) {
        const simd_words a = part_gather(bytes, row_bytes, i);
        const simd_words b = part_gather(bytes + row_bytes, row_bytes, i);
        const simd_words c = part_gather(bytes + 2 * row_bytes, row_bytes, i);
        const simd_words d = part_gather(bytes + 3 * row_bytes, row_bytes, i);
        const simd_words low_ab = part_zip_low_4(a, b), high_ab = part_zip_high_4(a, b);
        const simd_words low_cd = part_zip_low_4(c, d), high_cd = part_zip_high_4(c, d);

        out[0].v[i] = part_zip_low_8(low_ab, low_cd);
        out[1].v[i] = part_zip_high_8(low_ab, low_cd);
        out[2].v[i] = part_zip_low_8(high_ab, high_cd);
        out[3].v[i] = part_zip_high_8(high_ab, high_cd);
    }
}

#endif

/* Byte i of each lane, as a number. */
INLINE words words_byte(words v, size_t i)
{
    return words_and(words_right(v, (int)(8 * i)), words_all(0xff));
}

/* Bits 0 to 3 of each lane, in bits 0 of its bytes. */
INLINE words words_spread(words v)
{
    v = words_and(v, words_all(15));
    v = words_or(v, words_left(v, 7));
    return words_and(words_or(v, words_left(v, 14)), words_all(0x01010101));
}
