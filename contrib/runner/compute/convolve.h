/*
 * Causal convolution of each channel with a few taps. Recurrent mixers apply it before their
 * recurrence.
 */
#pragma once

#include <stddef.h>

struct run_convolution {
    size_t n_channels, n_taps;
    const float *taps; /* [n_taps][n_channels]; the last tap is for the token itself */
    const float *bias; /* [n_channels], or NULL */
    float *past;       /* [n_taps - 1][n_channels]: the previous inputs, the oldest first */
};

/*
 * out[t][c] = bias[c] + Σ taps[k][c] · x[t - (n_taps - 1) + k][c] for n tokens. Rows of x are
 * `stride` floats apart; `past` holds the rows before the first and is updated to the last inputs.
 * out has no gaps and must not overlap x. Works in parallel.
 */
void run_convolve(struct run_convolution *convolution, const float *x, size_t stride, size_t n,
                  float *out);
