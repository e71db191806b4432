/* The reference of dot products. */
#include "dequant/dot.h"
#include "dequant/slots.h"
#include "dequant/small_floats.h"

#include <math.h>

/* Define the dot products of a type by its numbers and their conversion to float. */
#define DEFINE_DOT(name, number, to_float)                                                         \
    void dequant_scalar_##name(const void *w, size_t w_stride_bytes, size_t n_rows,                \
                               const float *x, size_t x_stride, size_t n_columns, size_t n,        \
                               float *out, size_t out_stride)                                      \
    {                                                                                              \
        for (size_t r = 0; r < n_rows; r++) {                                                      \
            const number *left = (const void *)((const char *)w + r * w_stride_bytes);             \
                                                                                                   \
            for (size_t c = 0; c < n_columns; c++) {                                               \
                const float *right = x + c * x_stride;                                             \
                float sums[DEQUANT_DOT_LANES] = {0};                                               \
                                                                                                   \
                for (size_t i = 0; i < n; i++)                                                     \
                    sums[i % DEQUANT_DOT_LANES] =                                                  \
                        fmaf(to_float(left[i]), right[i], sums[i % DEQUANT_DOT_LANES]);            \
                out[c * out_stride + r] += dequant_dot_sum(sums);                                  \
            }                                                                                      \
        }                                                                                          \
    }

DEFINE_DOT(dot_f32, float, )
DEFINE_DOT(dot_f16, uint16_t, dequant_f16_to_f32)
DEFINE_DOT(dot_bf16, uint16_t, dequant_bf16_to_f32)
