/*
 * The factors of rotations: the only tensor data in config.json. They are kept once they have been
 * read, so that the text never changes.
 */
#pragma once

#include "fs/tree/hf/hf_model.h"

#include <pthread.h>

/* A head's width is twice the number of factors. */
#define FS_HF_MAX_FACTORS 1024

/* The lists that a model can have: rope_freqs, rope_factors_short, rope_factors_long. */
#define FS_HF_N_FACTORS 3

struct fs_hf_factors {
    const struct gguf_tensor *tensor; /* NULL: the model lacks this list, or it is too long */
    float values[FS_HF_MAX_FACTORS];  /* undefined until they are read */
};

struct fs_hf_all_factors {
    pthread_mutex_t lock;
    bool are_read;
    struct fs_hf_factors lists[FS_HF_N_FACTORS];
};

/* Find the tensors of the model, without reading their data. */
void fs_hf_factors_find(const struct fs_hf_model *hf, struct fs_hf_all_factors *all);

/*
 * Read all factors, unless they have been read. Any thread may call this. Returns 0, after which
 * they do not change, or the error of gguf_elements_read(): -EIO if data have not arrived yet.
 */
int fs_hf_factors_read(const struct fs_hf_model *hf, struct fs_hf_all_factors *all);

/* Return the most bytes by which reading the factors can make config.json longer. */
size_t fs_hf_factors_text_bytes(const struct fs_hf_all_factors *all);
