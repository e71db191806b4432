/*
 * The decoders for the CPU at hand. Each set of kernels is for one kind of CPU and gives the same
 * bits as the reference; which one serves is chosen once, at the start.
 */
#ifndef GGUFS_DEQUANT_KERNELS_H
#define GGUFS_DEQUANT_KERNELS_H

#include "dequant/dot.h"
#include "dequant/types.h"

#include <stdbool.h>

/*
 * Rounds n floats to a format of 16 bits, to nearest with ties to even. `out` holds 2 * n bytes at
 * any alignment, as `values` may have. What is too large becomes an infinity; a NaN keeps its sign
 * and the upper part of its payload and becomes quiet.
 */
typedef void dequant_encode_fn(const void *restrict values, void *restrict out, size_t n);

struct dequant_kernel {
    uint32_t type_id;
    uint32_t era;
    dequant_decode_fn *decode;
};

struct dequant_kernel_set {
    const char *name; /* "scalar", "avx2", "avx512" or "neon" */
    bool (*is_supported)(void);
    const struct dequant_kernel *kernels; /* up to one without `decode`; for the other types the
                                             set before this one serves */
    dequant_encode_fn *to_f16;
    dequant_encode_fn *to_bf16;
    dequant_dot_fn *dot;
};

/* The sets that this program holds, from the plainest to the best; NULL behind the last. */
const struct dequant_kernel_set *dequant_kernel_set_at(size_t index);

/*
 * Chooses the set of that name, or the best that the CPU supports if it is NULL. To be called
 * before there are threads; until then the reference serves. Returns 0, -EINVAL for an unknown
 * name, or -ENOTSUP if the CPU does not support the set.
 */
int dequant_choose_kernels(const char *name);

/* The set that serves. */
const struct dequant_kernel_set *dequant_chosen_kernels(void);

/* type->decode by the chosen kernels; the type must have it. */
void dequant_decode(const struct dequant_type *type, const void *restrict blocks,
                    float *restrict out, size_t n_blocks);

#endif
