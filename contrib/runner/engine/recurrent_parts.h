/* Functions that recurrent mixers share: loading convolutions, and memory for earlier tokens. */
#pragma once

#include "contrib/runner/compute/convolve.h"
#include "contrib/runner/engine/loader.h"
#include "contrib/runner/engine/pass.h"

/* Larger than in any known model; keeps products of sizes far from overflow. */
enum { RUN_MAX_CHANNELS = 1 << 24 };

/* Added to the squared length of queries and keys before they are normalized. */
#define RUN_L2_EPSILON 1e-6f

/* Load NAME.weight, [taps][n_channels] in ggml's order, and NAME.bias if it is there. */
void run_load_convolution(struct run_loader *loader, const char *name, uint64_t n_channels,
                          struct run_convolution *convolution);

/*
 * Return zeroed memory of rows · width floats that is freed with the model, or NULL after a
 * failure.
 */
float *run_load_memory(struct run_loader *loader, uint64_t rows, uint64_t width);

/* The same for a state, which is `empty` before the first token; see struct run_states. */
float *run_load_state(struct run_loader *loader, uint64_t rows, uint64_t width, float empty);

/* Copy n rows of `width` floats from one stride to another. */
void run_copy_rows(const float *from, size_t from_stride, size_t n, size_t width, float *to,
                   size_t to_stride);

/* A low-rank product (LoRA): up(f(down(x))) with the bias of `up`. Several may share the two
 * tensors. */
struct run_low_rank {
    struct run_linear down, up;
    enum run_activation activation;
};

/*
 * Load the tensors `down` and `up` for n_parts products: each has its part of the rows of `down`
 * and a matrix of `up`. `bias` is [n_parts][out], or NULL.
 */
void run_low_rank_load(struct run_loader *loader, const char *name, char first, uint64_t in,
                       uint64_t out, uint64_t n_parts, enum run_activation activation,
                       const float *bias, struct run_low_rank *low_rank);

/* out = product number `part` for the pass's rows of x. */
void run_low_rank_apply(const struct run_low_rank *low_rank, const struct run_pass *pass,
                        uint64_t part, const float *x, float *out);
