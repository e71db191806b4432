/*
 * Elements of tensors in another order than they are stored in: rows permuted, a matrix transposed,
 * a part of a tensor, two tensors interleaved.
 */
#ifndef GGUFS_FS_ARRANGED_H
#define GGUFS_FS_ARRANGED_H

#include "fs/tree/number_formats.h"
#include "gguf/model.h"

#include <stddef.h>
#include <stdint.h>

#define FS_MAX_DIMS 8

/*
 * An array of n_dims dimensions, of size[k] each, the last one the fastest. Its element (i0, i1,
 * ...) is element first[t] + the sum of i_k * stride[k] of tensors[t], counted through the tensor
 * in row-major order. t is the index of dimension which_dim, whose stride does not count; it is 0
 * if tensors[1] is NULL. An array without dimensions is one element.
 */
struct fs_arrangement {
    const struct gguf_tensor *tensors[2]; /* with decoders */
    uint64_t first[2];
    unsigned n_dims;
    uint64_t size[FS_MAX_DIMS]; /* of which_dim: 2 */
    uint64_t stride[FS_MAX_DIMS];
    unsigned which_dim;
    enum fs_map map; /* of each element */
    float constant;  /* for the map */
};

/* An arrangement that has been checked and prepared for reading. Any thread may read it. */
struct fs_arranged;

/*
 * Prepare an arrangement, which is copied; free *arranged with fs_arranged_free(). Returns 0,
 * -ENOMEM, -EINVAL if an element lies outside its tensor, or -EOVERFLOW.
 */
int fs_arranged_make(const struct fs_arrangement *arrangement, enum fs_format format,
                     struct fs_arranged **arranged);

void fs_arranged_free(struct fs_arranged *arranged);

uint64_t fs_arranged_size(const struct fs_arranged *arranged);

/* Return tensor 0 or 1, or NULL if there is no second one. */
const struct gguf_tensor *fs_arranged_tensor(const struct fs_arranged *arranged, unsigned index);

/*
 * Return true if the elements are stored in this order and format, without gaps, and get the offset
 * of the first byte in the data of tensor 0.
 */
bool fs_arranged_is_stored(const struct fs_arranged *arranged, uint64_t *offset);

/*
 * Write bytes `offset` to `offset + length`, which must lie in the array, to `out`. Returns 0,
 * -ENOMEM, or the error of gguf_source_lend().
 */
int fs_arranged_read(const struct gguf_model *model, const struct fs_arranged *arranged,
                     uint64_t offset, size_t length, char *out);

#endif
