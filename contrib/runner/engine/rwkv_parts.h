/*
 * Code shared by the parts of RWKV's layers. Tensors are looked up by their GGUF names, which are
 * links in trees of rwkv.cpp files. A tensor whose numbers or shape differ from GGUF has no GGUF
 * name; it is looked up by rwkv.cpp's own name, which begins with "blocks.N.".
 */
#pragma once

#include "contrib/runner/engine/recurrent_parts.h"

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
