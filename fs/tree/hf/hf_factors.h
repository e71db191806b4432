/*
 * The factors of rotations: the only tensor data in config.json. They are kept once they have been
 * read, so that the text never changes.
 */
#pragma once

#include "fs/tree/hf/hf_model.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* A head's width is twice the number of factors. */
#define FS_HF_MAX_FACTORS 1024

struct fs_hf_factors {
    const struct gguf_tensor *tensor; /* NULL: the model lacks this list */
    float values[FS_HF_MAX_FACTORS];  /* undefined until they are read */
};

/* The lists that a model can have. */
#define FS_HF_N_FACTORS 3

struct fs_hf_all_factors {
    pthread_mutex_t lock;
    bool are_read;
    struct fs_hf_factors lists[FS_HF_N_FACTORS];
};

/* Begin with no factors; `all` must be zero. End once no thread uses them any more. */
void fs_hf_factors_begin(struct fs_hf_all_factors *all);
void fs_hf_factors_end(struct fs_hf_all_factors *all);

/* Find the tensors of the model, without reading their data. */
void fs_hf_factors_find(const struct fs_hf_model *hf, struct fs_hf_all_factors *all);

/*
 * Read all factors, unless they have been read. Any thread may call this. Returns 0, after which
 * they do not change, or the error of gguf_elements_read(): -EIO if data have not arrived yet.
 */
int fs_hf_factors_read(const struct fs_hf_model *hf, struct fs_hf_all_factors *all);

/* Return the list of a tensor, or NULL if it is not a list of at most FS_HF_MAX_FACTORS numbers. */
const struct fs_hf_factors *fs_hf_factors_of(const struct fs_hf_all_factors *all,
                                             const struct gguf_tensor *tensor);

/* Return the most bytes by which reading the factors can make config.json longer. */
size_t fs_hf_factors_text_bytes(const struct fs_hf_all_factors *all);
