#include "contrib/runner/compute/convolve.h"

#include "contrib/runner/compute/thread_pool.h"

#include <string.h>

/* Products in a piece of work. */
#define PIECE_PRODUCTS 65536

/* The arguments of run_convolve(). */
struct call {
    const struct run_convolution *convolution;
    const float *x;
    size_t stride;
    float *out;
};

static void convolve_token(void *context, size_t token)
{
    const struct call *call = context;
    const struct run_convolution *convolution = call->convolution;
    const size_t n_channels = convolution->n_channels, n_before = convolution->n_taps - 1;
    float *restrict out = call->out + token * n_channels;

    if (convolution->bias)
        memcpy(out, convolution->bias, n_channels * sizeof *out);
    else
        memset(out, 0, n_channels * sizeof *out);
    for (size_t k = 0; k <= n_before; k++) {
        const float *restrict taps = convolution->taps + k * n_channels;
        const float *restrict row = token + k < n_before
                                        ? convolution->past + (token + k) * n_channels
                                        : call->x + (token + k - n_before) * call->stride;

#pragma omp simd
        for (size_t c = 0; c < n_channels; c++)
            out[c] += taps[c] * row[c];
    }
}

/* Keep the last rows of past and x for the next call. */
static void remember(struct run_convolution *convolution, const float *x, size_t stride, size_t n)
{
    const size_t n_channels = convolution->n_channels, n_before = convolution->n_taps - 1;
    const size_t n_kept = n < n_before ? n_before - n : 0;

    if (n_kept > 0)
        memmove(convolution->past, convolution->past + n * n_channels,
                n_kept * n_channels * sizeof(float));
    for (size_t i = n_kept; i < n_before; i++)
        memcpy(convolution->past + i * n_channels, x + (n + i - n_before) * stride,
               n_channels * sizeof(float));
}

void run_convolve(struct run_convolution *convolution, const float *x, size_t stride, size_t n,
                  float *out)
{
    struct call call = {convolution, x, stride, out};

    run_parallel_for_each(n,
                          run_grain(PIECE_PRODUCTS, convolution->n_channels * convolution->n_taps),
                          convolve_token, &call);
    remember(convolution, x, stride, n);
}
