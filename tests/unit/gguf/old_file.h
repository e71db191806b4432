/*
 * Small complete files in formats from before GGUF, made in memory. Tensor names come from
 * gguf/legacy/families.h; everything else is independent of the code under test.
 */
#pragma once

#include "tests/unit/gguf/model_file.h"

/* Rows have one block of the most common type. */
#define OLD_FILE_WIDTH  32u
#define OLD_FILE_LAYERS 2u
#define OLD_FILE_HEADS  4u
/* Rows of the tensors from which the number of KV heads and the feed-forward length follow. */
#define OLD_FILE_KV_ROWS      16u
#define OLD_FILE_FORWARD_ROWS 3u

struct old_file {
    const char *magic; /* in the order of the file's bytes: "tjgg" */
    uint32_t version;  /* 0: the format has no version */
    const char *family;
    uint32_t file_type;
    uint32_t type;        /* type of the tensors */
    uint32_t block_bytes; /* size of a row of OLD_FILE_WIDTH elements */
    bool without_tensors;
    uint32_t n_parts; /* of the model, if it is in parts; the file is one */
    uint32_t part;    /* its number, on which the data depend */
};

/* Return the file at `index`, or NULL past the last. */
const struct old_file *old_file_at(size_t index);

/* Make the file. The caller frees the bytes. Aborts if memory is short. */
struct model_bytes old_file_make(const struct old_file *file);

/* Return the offset where the vocabulary ends and the tensors begin. */
size_t old_file_tensors_offset(const struct old_file *file);

/*
 * Make a part of a llama model; `n_parts` may be any number. Its matrices have OLD_FILE_WIDTH
 * columns, its vectors ("norm") n_parts times as many elements. In containers without padding, the
 * data of a tensor follow its name.
 */
struct model_bytes old_file_make_part(uint32_t n_parts, uint32_t part);

/* Make a file of rwkv.cpp. `architecture` is "4", "5.1", "5.2", "6" or "7". */
struct model_bytes old_file_make_rwkv(uint32_t version, const char *architecture, uint32_t type,
                                      uint32_t block_bytes);
