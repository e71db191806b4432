/*
 * Strided views of tensors, as in NumPy: rows permuted, a matrix transposed, a part of a tensor,
 * two tensors interleaved.
 *
 * Example: a tensor of shape 2 × 3 holds the elements
 *
 *     a b c
 *     d e f        stored as a b c d e f
 *
 * Its transpose is the view with size {3, 2} and stride {1, 3}: element (i, j) of the view is
 * stored element 1 i + 3 j, so the view reads a d b e c f. The second row alone has first = 3, size
 * {3} and stride {1}. Both rows in reverse order cannot be a view: strides are not negative.
 */
#pragma once

#include "gguf/elements.h"
#include "gguf/model.h"

#include <stddef.h>
#include <stdint.h>

#define FS_MAX_DIMS 8

/*
 * A view of n_dims dimensions in row-major order. Its element (i0, i1, ...) is element first[t] +
 * the sum of i_k * stride[k] of tensors[t], counted through the tensor in row-major order. t is the
 * index along dimension which_dim, whose stride is ignored; t is 0 if tensors[1] is NULL. A view
 * without dimensions is one element.
 */
struct fs_arrangement {
    const struct gguf_tensor *tensors[2]; /* with decoders */
    uint64_t first[2];
    unsigned n_dims;
    uint64_t size[FS_MAX_DIMS];   /* in elements; size[which_dim] is 2 */
    uint64_t stride[FS_MAX_DIMS]; /* in stored elements */
    unsigned which_dim;
    enum gguf_map map; /* of each element */
    float constant;    /* for the map */
};

/* A view that has been checked and prepared for reading. Any thread may read it. */
struct fs_arranged;

/*
 * Prepare to read a view as numbers of `type`, which is F32, F16 or BF16. The arrangement is
 * copied. Free *arranged with fs_arranged_free(). Returns 0,
 * -ENOMEM, -EINVAL if an element lies outside its tensor, or -EOVERFLOW.
 */
int fs_arranged_make(const struct fs_arrangement *arrangement, const struct dequant_type *type,
                     struct fs_arranged **arranged);

void fs_arranged_free(struct fs_arranged *arranged);

uint64_t fs_arranged_size(const struct fs_arranged *arranged);

/* Return tensors[index]; NULL for index 1 if the view has one tensor. */
const struct gguf_tensor *fs_arranged_tensor(const struct fs_arranged *arranged, unsigned index);

/*
 * Return true if the elements are stored in this order and type, without gaps, and get the offset
 * of the first byte in the data of tensor 0.
 */
bool fs_arranged_is_stored(const struct fs_arranged *arranged, uint64_t *offset);

/*
 * Write bytes `offset` to `offset + length`, which must lie in the view, to `out`. Returns 0,
 * -ENOMEM, or the error of gguf_file_read().
 */
int fs_arranged_read(const struct gguf_model *model, const struct fs_arranged *arranged,
                     uint64_t offset, size_t length, char *out);
