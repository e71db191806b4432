/*
 * Tensors that belong together by their names: the halves of an importance matrix of llama-imatrix,
 * NAME.in_sum2 and NAME.counts, and the factors of a low-rank adapter, NAME.lora_a and NAME.lora_b
 * or as checkpoints for images name them. NAME is the model's tensor that the pair describes or
 * changes.
 */
#pragma once

#include "gguf/model.h"

#include <stdbool.h>
#include <stdint.h>

enum fs_pair_kind { FS_NO_PAIR, FS_IMPORTANCE_PAIR, FS_LORA_PAIR };

/* The half of a pair that a tensor is, by its name. */
struct fs_half {
    enum fs_pair_kind kind;
    bool is_second;          /* counts, or factor B */
    const char *other;       /* the suffix of the other half */
    struct gguf_string base; /* the name without its suffix, in memory of the model */
};

struct fs_half fs_half_of(const struct gguf_tensor *tensor);

/*
 * Return the tensor of name `base` and `suffix` among n_tensors sorted by name, or NULL; see
 * gguf_tensors_by_name().
 */
const struct gguf_tensor *fs_find_half(const struct gguf_tensor *const *by_name, uint64_t n_tensors,
                                       struct gguf_string base, const char *suffix);

/* The suffixes of an importance matrix: sums of squares, and the tokens they were summed over. */
#define FS_SUMS_SUFFIX   ".in_sum2"
#define FS_COUNTS_SUFFIX ".counts"

struct fs_tensor_pairs;

/*
 * Find the pairs among the model's tensors. *pairs is NULL if no tensor has the name of a half;
 * free it with free(). Returns 0 or -ENOMEM.
 */
int fs_tensor_pairs_make(const struct gguf_model *model, struct fs_tensor_pairs **pairs);

/* Return the other half of a tensor of the model, or NULL. `pairs` may be NULL. */
const struct gguf_tensor *fs_other_half(const struct fs_tensor_pairs *pairs,
                                        const struct gguf_tensor *tensor);

/*
 * Get the rank of a low-rank adapter's factors: A has `rank` rows, and B `rank` columns. Factors of
 * an embedding may be transposed, see llama_adapter_lora_init_impl() in src/llama-adapter.cpp of
 * llama.cpp. Returns 0 if the shapes do not fit each other.
 */
uint64_t fs_lora_rank(const struct gguf_tensor *a, const struct gguf_tensor *b);
