/*
 * Dot products of floats in vectors. The sums are the reference's in dequant/reference/dot.c: 16 of
 * them side by side, every step one fused multiply-add, so the bits are the same with vectors of
 * any width.
 */
#include "dequant/dot.h"
#include "dequant/kernels/simd.h"

#include <string.h>

#if defined(__AVX512F__)
enum { WIDTH = 16, ROWS = 4, COLUMNS = 4 };
#elif defined(__AVX2__)
enum { WIDTH = 8, ROWS = 2, COLUMNS = 2 };
#else
enum { WIDTH = 4, ROWS = 2, COLUMNS = 2 };
#endif

enum { PARTS = DEQUANT_DOT_LANES / WIDTH };

typedef float vector __attribute__((vector_size(WIDTH * sizeof(float)), aligned(4), may_alias));

/* a * b + c with one rounding. By intrinsics, because compilers contract only sometimes. */
static inline vector fused(vector a, vector b, vector c)
{
#if defined(__AVX512F__)
    return (vector)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX2__)
    return (vector)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return (vector)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#endif
}

static inline float sum_of(const vector sums[PARTS])
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
    vector sums[ROWS][COLUMNS][PARTS] = {0};
    const size_t whole = n / DEQUANT_DOT_LANES * DEQUANT_DOT_LANES;

    for (size_t i = 0; i < whole; i += DEQUANT_DOT_LANES) {
        for (size_t part = 0; part < PARTS; part++) {
            const size_t at = i + part * WIDTH;
            vector right[COLUMNS];

            for (size_t c = 0; c < n_columns; c++)
                right[c] = *(const vector *)(x + c * x_stride + at);
            for (size_t r = 0; r < n_rows; r++) {
                const vector left = *(const vector *)(w + r * w_stride + at);

                for (size_t c = 0; c < n_columns; c++)
                    sums[r][c][part] = fused(left, right[c], sums[r][c][part]);
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
