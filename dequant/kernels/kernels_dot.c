/*
 * Dot products of floats in vectors. The sums are the reference's in dequant/reference/dot.c: 16 of
 * them side by side, every step one fused multiply-add, so the bits are the same with vectors of
 * any width.
 */
#include "dequant/kernels/float_vectors.h"
#include "dequant/kernels/simd.h"

#include <string.h>

#if defined(__AVX512F__)
enum { ROWS = 4, COLUMNS = 4 };
#else
enum { ROWS = 2, COLUMNS = 2 };
#endif

static inline float sum_of(const float_vector sums[FLOAT_PARTS])
{
    float lanes[DEQUANT_DOT_LANES];

    memcpy(lanes, sums, sizeof lanes);
    return dequant_dot_sum(lanes);
}

/* n_rows by n_columns products at once; both are constants where this is inlined. */
static inline __attribute__((always_inline)) void block(const float *w, size_t w_stride,
                                                        size_t n_rows, const float *x,
                                                        size_t x_stride, size_t n_columns, size_t n,
                                                        float *out, size_t out_stride)
{
    float_vector sums[ROWS][COLUMNS][FLOAT_PARTS] = {0};
    const size_t whole = n / DEQUANT_DOT_LANES * DEQUANT_DOT_LANES;

    for (size_t i = 0; i < whole; i += DEQUANT_DOT_LANES) {
        for (size_t part = 0; part < FLOAT_PARTS; part++) {
            const size_t at = i + part * FLOAT_WIDTH;
            float_vector right[COLUMNS];

            for (size_t c = 0; c < n_columns; c++)
                right[c] = *(const float_vector *)(x + c * x_stride + at);
            for (size_t r = 0; r < n_rows; r++) {
                const float_vector left = *(const float_vector *)(w + r * w_stride + at);

                for (size_t c = 0; c < n_columns; c++)
                    sums[r][c][part] = float_fused(left, right[c], sums[r][c][part]);
            }
        }
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
                rest[i - whole] =
                    __builtin_fmaf(w[r * w_stride + i], x[c * x_stride + i], rest[i - whole]);
            out[c * out_stride + r] += dequant_dot_sum(rest);
        }
    }
}

void SIMD_NAME(dot_f32)(const void *rows, size_t w_stride_bytes, size_t n_rows, const float *x,
                        size_t x_stride, size_t n_columns, size_t n, float *out, size_t out_stride)
{
    const size_t w_stride = w_stride_bytes / sizeof(float);
    const float *w = rows;
    size_t r = 0;

    for (; r + ROWS <= n_rows; r += ROWS, w += ROWS * w_stride, out += ROWS) {
        size_t c = 0;

        for (; c + COLUMNS <= n_columns; c += COLUMNS)
            block(w, w_stride, ROWS, x + c * x_stride, x_stride, COLUMNS, n, out + c * out_stride,
                  out_stride);
        for (; c < n_columns; c++)
            block(w, w_stride, ROWS, x + c * x_stride, x_stride, 1, n, out + c * out_stride,
                  out_stride);
    }
    for (; r < n_rows; r++, w += w_stride, out++)
        for (size_t c = 0; c < n_columns; c++)
            block(w, w_stride, 1, x + c * x_stride, x_stride, 1, n, out + c * out_stride,
                  out_stride);
}
