/* Tensors of the checkpoint as arrangements of elements of the model's tensors. */
#pragma once

#include "fs/tree/data/arranged.h"
#include "gguf/models/orders.h"

#include <stdint.h>

/* A tensor of the file, or the part of one that belongs to an expert. */
struct fs_hf_part {
    const struct gguf_tensor *tensor;
    uint64_t first; /* element of the tensor */
    struct gguf_order_shape shape;
};

/* A tensor of the checkpoint, and one of the arrangements that it consists of. */
struct fs_hf_arranged {
    unsigned n_dims;
    uint64_t shape[FS_MAX_DIMS]; /* the slowest dimension first */
    uint64_t n_pieces;           /* arrangements that follow one another */
    struct fs_arrangement piece; /* without map and constant */
};

/*
 * Get the shape and piece `index` of the tensor that parts[0] and, for some orders, parts[1]
 * become. Returns 0, or -EINVAL if shapes and sizes do not fit.
 */
int fs_hf_arrange(enum gguf_order order, const struct gguf_order_sizes *sizes,
                  const struct fs_hf_part parts[2], uint64_t index, struct fs_hf_arranged *out);
