/*
 * Code shared by the parts of RWKV's layers. Tensors are looked up by their GGUF names, which are
 * links in trees of rwkv.cpp files. A tensor whose numbers or shape differ from GGUF has no GGUF
 * name; it is looked up by rwkv.cpp's own name, which begins with "blocks.N.".
 */
#pragma once

#include "contrib/runner/engine/recurrent_parts.h"

/* Load n floats of tensor `name` or, in rwkv.cpp's files, `own_name`; one must exist. */
const float *run_load_rwkv(struct run_loader *loader, const char *name, const char *own_name,
                           uint64_t n);

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

/* The last token's row, which the first token of the next batch needs. */
struct run_token_shift {
    size_t width;
    float *last;
};

void run_token_shift_load(struct run_loader *loader, size_t width, struct run_token_shift *shift);

/* difference[t] = x[t - 1] - x[t], all [n][width]. Then stores the last row. */
void run_token_shift(const struct run_token_shift *shift, const float *x, size_t n,
                     float *difference);

/* out = x + difference · lerp, for n rows; lerp_stride is 0 if all rows have the same lerp. */
void run_lerp(const float *x, const float *difference, const float *lerp, size_t lerp_stride,
              size_t n, size_t width, float *out);
