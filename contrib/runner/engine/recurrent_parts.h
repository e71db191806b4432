/* Functions that recurrent mixers share: loading convolutions, and memory for earlier tokens. */
#pragma once

#include "contrib/runner/compute/recurrences.h"
#include "contrib/runner/engine/loader.h"
#include "contrib/runner/engine/pass.h"

/* Larger than in any known model; keeps products of sizes far from overflow. */
enum { RUN_MAX_CHANNELS = 1 << 24 };

/*
 * Load NAME.weight, [taps][n_channels] in ggml's order, and NAME.bias if it is there. With `parts`,
 * for example "qkv", they are NAME_q, NAME_k and NAME_v with their channels one after the other.
 */
void run_load_convolution(struct run_loader *loader, const char *name, const char *parts,
                          uint64_t n_channels, struct run_convolution *convolution);

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

/*
 * RWKV. Tensors are looked up by their GGUF names, which are links in trees of rwkv.cpp files. A
 * tensor whose numbers or shape differ from GGUF has no GGUF name; it is looked up by rwkv.cpp's
 * own name, which begins with "blocks.N.".
 */

/* Load n floats of tensor `name` or, in rwkv.cpp's files, `own_name`; one must exist. */
float *run_load_rwkv(struct run_loader *loader, const char *name, const char *own_name, uint64_t n);

/* The same for n_head heads; rwkv.cpp's files may have a single number for a head. */
const float *run_load_rwkv_heads(struct run_loader *loader, const char *name, const char *own_name,
                                 uint64_t n_head, uint64_t width);

/*
 * Load the lerp in out = x + (previous x - x) · lerp. Before RWKV 6, the tensor with the file's own
 * name holds 1 - lerp.
 */
const float *run_load_rwkv_lerp(struct run_loader *loader, const char *name, const char *own_name,
                                uint64_t n);

/*
 * Loads the norm of the heads after the recurrence, time_mix_ln. Models converted from Qwen, which
 * have RMS norms elsewhere, may lack it.
 */
void run_load_rwkv_norm(struct run_loader *loader, const struct run_hparams *hparams, float epsilon,
                        struct run_norm_layer *norm);

/*
 * difference[t] = x[t - 1] - x[t], all [n][n_embd]; `last` is the row before the first token and
 * becomes the last row.
 */
void run_token_shift(const struct run_pass *pass, float *last, const float *x, float *difference);

/* out = x + difference · lerp, [n][n_embd]; all rows have the same lerp unless it has n rows. */
void run_lerp(const struct run_pass *pass, const float *x, const float *difference,
              const float *lerp, bool has_rows, float *out);
