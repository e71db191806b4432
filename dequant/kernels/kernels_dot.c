/*
 * Dot products in vectors of floats, to which smaller numbers are converted when they are loaded.
 * The sums are the reference's in dequant/reference/reference_numbers.c: 16 of them side by side,
 * every step one fused multiply-add, so the bits are the same with vectors of any width.
 */
#include "dequant/kernels/simd.h"
#include "dequant/small_floats.h"

#include <string.h>

/* Rows and columns of a block, whose sums are kept in registers: AVX2 has 16 of them. */
#if defined(__AVX2__) && !defined(__AVX512F__)
enum { ROWS = 4, COLUMNS = 2, SUMS = 8 };
#else
enum { ROWS = 4, COLUMNS = 4, SUMS = 16 };
#endif

/* The numbers of a row; a constant where functions are inlined. */
enum numbers { F32, F16, BF16 };

INLINE size_t size_of(enum numbers numbers)
{
    return numbers == F32 ? sizeof(float) : sizeof(uint16_t);
}

/* Numbers i to i + FLOAT_WIDTH - 1 of a row. */
INLINE float_vector load(enum numbers numbers, const char *row, size_t i)
{
    const void *from = row + i * size_of(numbers);

    switch (numbers) {
    case F16:
        return part_load_f16(from);
    case BF16:
        return part_load_bf16(from);
    case F32:
        break;
    }
    return float_load(from);
}

INLINE float load_one(enum numbers numbers, const char *row, size_t i)
{
    uint16_t half;
    float value;

    if (numbers == F32) {
        memcpy(&value, row + i * sizeof value, sizeof value);
        return value;
    }
    memcpy(&half, row + i * sizeof half, sizeof half);
    return numbers == F16 ? dequant_f16_to_f32(half) : dequant_bf16_to_f32(half);
}

static inline float sum_of(const float_vector sums[FLOAT_PARTS])
{
    float lanes[DEQUANT_DOT_LANES];

    memcpy(lanes, sums, sizeof lanes);
    return dequant_dot_sum(lanes);
}

/*
 * Add lane i + half to lane i, as in dequant_dot_sum(), in each group of 2 * half lanes of vectors
 * a and b. The result is one vector: a's groups, then b's, with half as many lanes each.
 */
#define LOWER(half, i) ((i) / (half)*2 * (half) + (i) % (half))
#define LOWER_4(half, i, plus)                                                                     \
    LOWER(half, i) + (plus), LOWER(half, (i) + 1) + (plus), LOWER(half, (i) + 2) + (plus),         \
        LOWER(half, (i) + 3) + (plus)
#if defined(__AVX512F__)
#define LANES_OF(half, plus)                                                                       \
    LOWER_4(half, 0, plus), LOWER_4(half, 4, plus), LOWER_4(half, 8, plus), LOWER_4(half, 12, plus)
#elif defined(__AVX2__)
#define LANES_OF(half, plus) LOWER_4(half, 0, plus), LOWER_4(half, 4, plus)
#else
#define LANES_OF(half, plus) LOWER_4(half, 0, plus)
#endif
#define ADD_HALVES(a, b, half)                                                                     \
    (__builtin_shufflevector(a, b, LANES_OF(half, 0)) +                                            \
     __builtin_shufflevector(a, b, LANES_OF(half, half)))

/* Make n / 2 vectors of n: see ADD_HALVES. */
#define HALVE(lanes, n, half)                                                                      \
    UNROLL                                                                                         \
    for (size_t i = 0; i < (n) / 2; i++) {                                                         \
        (lanes)[i] = ADD_HALVES((lanes)[2 * i], (lanes)[2 * i + 1], half);                         \
    }

/* Sum up the lanes of all products of a block at once: row r and column c to [c * ROWS + r]. */
INLINE void sum_block(float_vector sums[ROWS][COLUMNS][FLOAT_PARTS], float out[SUMS])
{
    float_vector lanes[SUMS];

    UNROLL
    for (size_t i = 0; i < SUMS; i++) {
        float_vector *parts = sums[i % ROWS][i / ROWS];

        for (size_t half = FLOAT_PARTS / 2; half > 0; half /= 2)
            for (size_t part = 0; part < half; part++)
                parts[part] += parts[part + half];
        lanes[i] = parts[0];
    }
#if defined(__AVX512F__)
    HALVE(lanes, 16, 8)
    HALVE(lanes, 8, 4)
    HALVE(lanes, 4, 2)
    HALVE(lanes, 2, 1)
#elif defined(__AVX2__)
    HALVE(lanes, 8, 4)
    HALVE(lanes, 4, 2)
    HALVE(lanes, 2, 1)
#else
    HALVE(lanes, 16, 2)
    HALVE(lanes, 8, 1)
#endif
    memcpy(out, lanes, SUMS * sizeof *out);
}

/* n_rows by n_columns products at once; both are constants where this is inlined. */
INLINE void block(enum numbers numbers, const char *w, size_t w_stride_bytes, size_t n_rows,
                  const float *x, size_t x_stride, size_t n_columns, size_t n, float *out,
                  size_t out_stride)
{
    float_vector sums[ROWS][COLUMNS][FLOAT_PARTS] = {0};
    const size_t whole = n / DEQUANT_DOT_LANES * DEQUANT_DOT_LANES;

    /* One part after the other: the registers have no room for the sums of all. */
    for (size_t part = 0; part < FLOAT_PARTS; part++) {
        for (size_t at = part * FLOAT_WIDTH; at < whole; at += DEQUANT_DOT_LANES) {
            float_vector right[COLUMNS];

            for (size_t c = 0; c < n_columns; c++)
                right[c] = float_load(x + c * x_stride + at);
            for (size_t r = 0; r < n_rows; r++) {
                const float_vector left = load(numbers, w + r * w_stride_bytes, at);

                for (size_t c = 0; c < n_columns; c++)
                    sums[r][c][part] = float_fused(left, right[c], sums[r][c][part]);
            }
        }
    }
    if (whole == n && n_rows == ROWS && n_columns == COLUMNS) {
        float all[SUMS];

        sum_block(sums, all);
        for (size_t i = 0; i < SUMS; i++)
            out[i / ROWS * out_stride + i % ROWS] += all[i];
        return;
    }
    for (size_t r = 0; r < n_rows; r++) {
        for (size_t c = 0; c < n_columns; c++) {
            float rest[DEQUANT_DOT_LANES];

            if (whole == n) {
                out[c * out_stride + r] += sum_of(sums[r][c]);
                continue;
            }
            memcpy(rest, sums[r][c], sizeof rest);
            for (size_t i = whole; i < n; i++)
                rest[i - whole] = __builtin_fmaf(load_one(numbers, w + r * w_stride_bytes, i),
                                                 x[c * x_stride + i], rest[i - whole]);
            out[c * out_stride + r] += dequant_dot_sum(rest);
        }
    }
}

INLINE void dot(enum numbers numbers, const char *w, size_t w_stride_bytes, size_t n_rows,
                const float *x, size_t x_stride, size_t n_columns, size_t n, float *out,
                size_t out_stride)
{
    size_t r = 0;

    for (; r + ROWS <= n_rows; r += ROWS, w += ROWS * w_stride_bytes, out += ROWS) {
        size_t c = 0;

        for (; c + COLUMNS <= n_columns; c += COLUMNS)
            block(numbers, w, w_stride_bytes, ROWS, x + c * x_stride, x_stride, COLUMNS, n,
                  out + c * out_stride, out_stride);
        for (; c < n_columns; c++)
            block(numbers, w, w_stride_bytes, ROWS, x + c * x_stride, x_stride, 1, n,
                  out + c * out_stride, out_stride);
    }
    for (; r < n_rows; r++, w += w_stride_bytes, out++)
        for (size_t c = 0; c < n_columns; c++)
            block(numbers, w, w_stride_bytes, 1, x + c * x_stride, x_stride, 1, n,
                  out + c * out_stride, out_stride);
}

#define DEFINE_DOT(name, numbers)                                                                  \
    void SIMD_NAME(name)(const void *w, size_t w_stride_bytes, size_t n_rows, const float *x,      \
                         size_t x_stride, size_t n_columns, size_t n, float *out,                  \
                         size_t out_stride)                                                        \
    {                                                                                              \
        dot(numbers, w, w_stride_bytes, n_rows, x, x_stride, n_columns, n, out, out_stride);       \
    }

DEFINE_DOT(dot_f32, F32)
DEFINE_DOT(dot_f16, F16)
DEFINE_DOT(dot_bf16, BF16)
