/*
 * What the parts of RWKV's layers have in common.
 *
 * Tensors go by their names in GGUF, which the trees of rwkv.cpp's files have as links. Where those
 * have none, because the numbers mean something else or come in another shape, the file's own names
 * are taken: they begin with "blocks.N.".
 */
#ifndef GGUFS_RUNNER_RWKV_PARTS_H
#define GGUFS_RUNNER_RWKV_PARTS_H

#include "contrib/runner/engine/loader.h"
#include "contrib/runner/engine/pass.h"
#include "contrib/runner/engine/recurrent_parts.h"

/* n floats of the tensor of one name or of the other; there must be one. */
const float *run_load_rwkv(struct run_loader *loader, const char *name, const char *own_name,
                           uint64_t n);

/* The same for n_head heads; rwkv.cpp's may have one number for a whole head. */
const float *run_load_rwkv_heads(struct run_loader *loader, const char *name, const char *own_name,
                                 uint64_t n_head, uint64_t width);

/*
 * What makes out = x + (x before - x) · lerp. Before RWKV 6 the file's own name is for 1 - lerp.
 */
const float *run_load_rwkv_lerp(struct run_loader *loader, const char *name, const char *own_name,
                                uint64_t n);

/*
 * The norm of the heads of what is found, time_mix_ln. Models that were made of Qwen, which have
 * RMS norms elsewhere, may go without.
 */
void run_load_rwkv_norm(struct run_loader *loader, const struct run_hparams *hparams, float epsilon,
                        struct run_norm_layer *norm);

/* The newest token's row, for the first of the next batch. */
struct run_token_shift {
    size_t width;
    float *last;
};

void run_token_shift_load(struct run_loader *loader, size_t width, struct run_token_shift *shift);
void run_token_shift_reset(const struct run_token_shift *shift);

/* difference[t] = x[t - 1] - x[t], all [n][width]; then the last row is remembered. */
void run_token_shift(const struct run_token_shift *shift, const float *x, size_t n,
                     float *difference);

/* out = x + difference · lerp, for n rows; lerp_stride: 0 if all rows have the same lerp. */
void run_lerp(const float *x, const float *difference, const float *lerp, size_t lerp_stride,
              size_t n, size_t width, float *out);

/* up(f(down(x))), with the bias that `up` has; several side by side have each a part of both. */
struct run_low_rank {
    struct run_linear down, up;
    enum run_activation activation;
};

/*
 * NAME1.weight and NAME2.weight. The rows of the first are shared out among the n_parts, the second
 * is a matrix for each. `bias`: [n_parts][out], or NULL.
 */
void run_low_rank_load(struct run_loader *loader, const char *name, uint64_t in, uint64_t out,
                       uint64_t n_parts, enum run_activation activation, const float *bias,
                       struct run_low_rank *low_rank);

/* Works on n rows. Returns 0 or -ENOMEM. */
int run_low_rank_apply(const struct run_low_rank *low_rank, const struct run_pass *pass,
                       uint64_t part, const float *x, float *out);

#endif
