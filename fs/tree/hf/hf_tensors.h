/* The tensors of the checkpoint, and how each is made from tensors of the file. */
#pragma once

#include "fs/tree/data/arranged.h"
#include "fs/tree/hf/hf_rows.h"

/* A tensor of the checkpoint. */
struct fs_hf_tensor {
    const struct gguf_tensor *tensor; /* NULL: a number from a key */
    const struct gguf_tensor *with;   /* NULL: none */
    const struct gguf_rename *rule;
    struct gguf_name_match match;
    bool is_part; /* of an expert; else the whole tensor */
};

struct fs_hf_tensors {
    struct gguf_names names;   /* of the row */
    struct fs_hf_tensor *list; /* in the order of the file */
    size_t count;
    size_t room;
    uint64_t n_more_pieces; /* arrangements beyond one for each tensor */
};

/* A tensor of the checkpoint, and one of the arrangements that it consists of. */
struct fs_hf_arranged {
    unsigned n_dims;
    uint64_t shape[FS_MAX_DIMS]; /* the slowest dimension first */
    uint64_t n_pieces;           /* arrangements that follow one another */
    struct fs_arrangement piece; /* without map and constant */
};

/*
 * Find the checkpoint's tensors by the rules of a row. Lines about tensors that no rule uses are
 * added to `unused`, and lines about what does not fit to `obstacles`. Returns 0, -ENOMEM or the
 * error of gguf_hash_key_make(). Call fs_hf_tensors_free() in any case.
 */
int fs_hf_tensors_find(const struct fs_hf_model *hf, const struct fs_hf_row *row,
                       struct fs_hf_tensors *tensors, struct fs_hf_lines *unused,
                       struct fs_hf_lines *obstacles);
void fs_hf_tensors_free(struct fs_hf_tensors *tensors);

void fs_hf_tensor_write_name(const struct fs_hf_tensor *tensor, char name[GGUF_NAME_BYTES]);

/* Get the shape and one of the arrangements. Returns 0 or -EINVAL. */
int fs_hf_tensor_arrange(const struct fs_hf_model *hf, const struct fs_hf_tensor *tensor,
                         uint64_t piece, struct fs_hf_arranged *out);
