/* Functions that recurrent mixers share: loading convolutions, and memory for earlier tokens. */
#ifndef GGUFS_RUNNER_RECURRENT_PARTS_H
#define GGUFS_RUNNER_RECURRENT_PARTS_H

#include "contrib/runner/compute/convolve.h"
#include "contrib/runner/engine/loader.h"

/* Larger than in any known model; keeps products of sizes far from overflow. */
enum { RUN_MAX_CHANNELS = 1 << 24 };

/* Load NAME.weight, [taps][n_channels] in ggml's order, and NAME.bias if it is there. */
void run_load_convolution(struct run_loader *loader, const char *name, uint64_t n_channels,
                          struct run_convolution *convolution);
void run_convolution_reset(struct run_convolution *convolution);

/* Return the number of channels of the convolution NAME, or 0 if it is missing. */
uint64_t run_load_n_channels(struct run_loader *loader, const char *name);

/*
 * Return zeroed memory of rows · width floats that is freed with the model, or NULL after a
 * failure.
 */
float *run_load_memory(struct run_loader *loader, uint64_t rows, uint64_t width);

/* Copy n rows of `width` floats from one stride to another. */
void run_copy_rows(const float *from, size_t from_stride, size_t n, size_t width, float *to,
                   size_t to_stride);

#endif
