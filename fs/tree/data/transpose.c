#include "fs/tree/data/transpose.h"

#include <stdint.h>
#include <string.h>

typedef uint16_t vector16 __attribute__((vector_size(16)));
typedef uint32_t vector32 __attribute__((vector_size(16)));

#define LOW_16(a, b)  __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH_16(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define LOW_32(a, b)  __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HIGH_32(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)

/*
 * Interleave each row with the one half a block below it. This moves a bit of the rows' index to
 * the index in the row, and the other way round; done for each bit, it exchanges both.
 */
#define INTERLEAVE(bits, to, from, n)                                                              \
    _Pragma("GCC unroll 4") for (size_t i = 0; i < (n) / 2; i++)                                   \
    {                                                                                              \
        (to)[2 * i] = LOW_##bits((from)[i], (from)[i + (n) / 2]);                                  \
        (to)[2 * i + 1] = HIGH_##bits((from)[i], (from)[i + (n) / 2]);                             \
    }

/* Transpose a block of 8 rows of 8 numbers. */
static inline void transpose_block16(const char *from, size_t from_pitch, char *to, size_t to_pitch)
{
    vector16 rows[8], mixed[8];

    _Pragma("GCC unroll 8") for (size_t i = 0; i < 8; i++, from += from_pitch)
        memcpy(&rows[i], from, sizeof rows[i]);
    INTERLEAVE(16, mixed, rows, 8)
    INTERLEAVE(16, rows, mixed, 8)
    INTERLEAVE(16, mixed, rows, 8)
    _Pragma("GCC unroll 8") for (size_t i = 0; i < 8; i++, to += to_pitch)
        memcpy(to, &mixed[i], sizeof mixed[i]);
}

/* The same for 4 rows of 4 numbers. */
static inline void transpose_block32(const char *from, size_t from_pitch, char *to, size_t to_pitch)
{
    vector32 rows[4], mixed[4];

    _Pragma("GCC unroll 4") for (size_t i = 0; i < 4; i++, from += from_pitch)
        memcpy(&rows[i], from, sizeof rows[i]);
    INTERLEAVE(32, mixed, rows, 4)
    INTERLEAVE(32, rows, mixed, 4)
    _Pragma("GCC unroll 4") for (size_t i = 0; i < 4; i++, to += to_pitch)
        memcpy(to, &rows[i], sizeof rows[i]);
}

/* Transpose numbers one by one: the parts beside the blocks. */
static void transpose_rest(const char *from, size_t from_pitch, char *to, size_t to_pitch,
                           size_t n_rows, size_t n_columns, size_t number_bytes)
{
    for (size_t i = 0; i < n_columns; i++) {
        for (size_t j = 0; j < n_rows; j++)
            memcpy(to + i * to_pitch + j * number_bytes, from + j * from_pitch + i * number_bytes,
                   number_bytes);
    }
}

/* Define the transposition of a matrix by blocks of n rows of n numbers. */
#define DEFINE_TRANSPOSE(bits, n)                                                                  \
    void fs_transpose##bits(const void *from, size_t from_pitch, void *to, size_t to_pitch,        \
                            size_t n_rows, size_t n_columns)                                       \
    {                                                                                              \
        const size_t number_bytes = (bits) / 8;                                                    \
        const size_t block_rows = n_rows / (n) * (n), block_columns = n_columns / (n) * (n);       \
        const char *const in = from;                                                               \
        char *const out = to;                                                                      \
                                                                                                   \
        for (size_t i = 0; i < block_columns; i += (n)) {                                          \
            for (size_t j = 0; j < block_rows; j += (n))                                           \
                transpose_block##bits(in + j * from_pitch + i * number_bytes, from_pitch,          \
                                      out + i * to_pitch + j * number_bytes, to_pitch);            \
        }                                                                                          \
        transpose_rest(in + block_rows * from_pitch, from_pitch, out + block_rows * number_bytes,  \
                       to_pitch, n_rows - block_rows, block_columns, number_bytes);                \
        transpose_rest(in + block_columns * number_bytes, from_pitch,                              \
                       out + block_columns * to_pitch, to_pitch, n_rows,                           \
                       n_columns - block_columns, number_bytes);                                   \
    }

DEFINE_TRANSPOSE(16, 8)
DEFINE_TRANSPOSE(32, 4)
