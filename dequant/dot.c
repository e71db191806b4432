#include "dequant/dot.h"

#include <math.h>

void dequant_dot_reference(const float *w, size_t w_stride, size_t n_rows, const float *x,
                           size_t x_stride, size_t n_columns, size_t n, float *out,
                           size_t out_stride)
{
    for (size_t r = 0; r < n_rows; r++) {
        for (size_t c = 0; c < n_columns; c++) {
            float sums[DEQUANT_DOT_LANES] = {0};

            for (size_t i = 0; i < n; i++)
                sums[i % DEQUANT_DOT_LANES] =
                    fmaf(w[r * w_stride + i], x[c * x_stride + i], sums[i % DEQUANT_DOT_LANES]);
            out[c * out_stride + r] += dequant_dot_sum(sums);
        }
    }
}
