/* The result of `ggufs --diff`, and its output. */
#pragma once

#include "fs/tree/data/comparison.h"
#include "fs/tree/tree.h"

#include <stdbool.h>
#include <stdio.h>

/* A key of one or both models. The pointer is NULL for a model that lacks the key. */
struct fs_key_pair {
    const struct gguf_key *keys[2];
};

enum fs_tensor_difference {
    FS_SAME_TENSOR,
    FS_ONLY_IN_ONE,
    FS_OTHER_SHAPE,
    FS_OTHER_TYPE, /* but equal values */
    FS_OTHER_VALUES,
    FS_NOT_COMPARABLE, /* a type cannot be decoded, and the stored bytes are not the same */
};

struct fs_tensor_pair {
    const struct gguf_tensor *tensors[2];
    enum fs_tensor_difference difference;
    bool is_compared; /* as numbers */
    bool is_weighted;
    struct fs_comparison comparison; /* if the values were compared */
};

static inline struct gguf_string fs_pair_name(const struct fs_tensor_pair *pair)
{
    return gguf_name_of(pair->tensors[pair->tensors[0] ? 0 : 1]);
}

struct fs_diff {
    struct fs_tree *trees[2];
    const char *paths[2];     /* of the models */
    struct fs_key_pair *keys; /* keys that differ, sorted by name; owned */
    size_t n_keys;
    struct fs_tensor_pair *tensors; /* chosen tensors, largest error first; owned */
    size_t n_tensors;
    size_t n_compared, n_different; /* tensors */
    size_t n_weighted;              /* compared tensors that have weights */
    struct fs_comparison total;     /* over the weighted tensors; without any, over all */
};

void fs_diff_print(const struct fs_diff *diff);
/* Returns 0 or -ENOMEM. */
int fs_diff_print_json(const struct fs_diff *diff);

/* Draw the errors by layer (columns) and kind of tensor (rows). */
void fs_diff_draw(const struct fs_diff *diff, FILE *out);
