/*
 * Arrangers: each undoes something that the GGUF converter does to a tensor. It describes the
 * tensor of the checkpoint as arrangements of elements of tensors in the file; nothing is computed
 * before it is read.
 */
#ifndef GGUFS_FS_HF_ARRANGE_H
#define GGUFS_FS_HF_ARRANGE_H

#include "fs/tree/hf/hf_model.h"
#include "fs/tree/image.h"

#include <stdint.h>

/* A tensor of the file, or the part of one that belongs to an expert. */
struct fs_hf_part {
    const struct gguf_tensor *tensor;
    uint64_t first; /* element of the tensor */
    unsigned n_dims;
    uint64_t shape[FS_MAX_DIMS]; /* the slowest dimension first */
};

struct fs_hf_request {
    const struct fs_hf_model *hf;
    uint64_t layer;
    struct fs_hf_part parts[2]; /* the second one if the rule has `with` */
    uint64_t piece;             /* the number of the arrangement that is wanted */
};

/* The tensor of the checkpoint, and one of the arrangements that it consists of. */
struct fs_hf_arranged {
    unsigned n_dims;
    uint64_t shape[FS_MAX_DIMS]; /* the slowest dimension first */
    uint64_t n_pieces;           /* arrangements that follow one another */
    struct fs_arrangement piece; /* without map and constant */
};

/* Returns 0, or -EINVAL if the sizes of tensors and keys do not fit. */
typedef int fs_hf_arranger(const struct fs_hf_request *request, struct fs_hf_arranged *out);

fs_hf_arranger fs_hf_as_stored;
fs_hf_arranger fs_hf_transposed;       /* of two dimensions, or of three the last two */
fs_hf_arranger fs_hf_flat;             /* with one dimension */
fs_hf_arranger fs_hf_matrix;           /* with two dimensions: [n] becomes [1, n] */
fs_hf_arranger fs_hf_with_middle_axis; /* [n, m], also with axes of size 1, becomes [n, 1, m] */
fs_hf_arranger fs_hf_in_third_axis;    /* n elements become [1, 1, n, 1] */
/*
 * Rows of q and k: the rotated pairs are rows i and i + width / 2 of a head, and became rows 2i and
 * 2i + 1. In a layer without heads of keys, which the converter took for recurrent, they are as
 * they were.
 */
fs_hf_arranger fs_hf_rotated_q;
fs_hf_arranger fs_hf_rotated_k;
/* q, k and v of each head follow one another, and became all q, all k, all v. */
fs_hf_arranger fs_hf_qkv_by_head;
/* For each head of k: its heads of q, k, v; became all q, all k, all v. */
fs_hf_arranger fs_hf_qkv_by_group;
/* [expert, row, column] becomes [expert · row, column], or [expert · column, row]. */
fs_hf_arranger fs_hf_joined_rows;
fs_hf_arranger fs_hf_joined_columns;
/*
 * Linear attention with n_k heads of keys and n_v of values. Qwen3-Next: for each head of keys its
 * q, k, v and z, from all q, k, v in one tensor and all z in another one.
 */
fs_hf_arranger fs_hf_qkvz_by_group;
/*
 * Qwen 3.5: value heads in the order of the key heads that they belong to; the converter lets
 * neighbours belong to different ones. They are rows, columns, or rows after those of q and k.
 */
fs_hf_arranger fs_hf_value_rows;
fs_hf_arranger fs_hf_value_columns;
fs_hf_arranger fs_hf_value_rows_of_qkv;
fs_hf_arranger fs_hf_value_rows_of_convolution; /* the same with an axis in the middle */
/* Rows of the first part and of the second one, for each index of the slowest dimension. */
fs_hf_arranger fs_hf_concatenated;
/* [rows of both, column] from two of [row, column] */
fs_hf_arranger fs_hf_concatenated_rows;
/* [expert, in, out of the first, out of the second] from two of [expert, out, in] */
fs_hf_arranger fs_hf_concatenated_columns;
/* [expert, in, out of both parts alternating] from two of [expert, out, in] */
fs_hf_arranger fs_hf_alternating_columns;
/* The same for biases: [expert, out of both parts alternating]. */
fs_hf_arranger fs_hf_alternating;
/* kv_b of latent attention from k_b, which is transposed by head, and v_b. */
fs_hf_arranger fs_hf_latent_kv;

#endif
