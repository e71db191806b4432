/*
 * Small complete files from before GGUF, made in memory. Apart from the names of the tensors, which
 * come from gguf/legacy/families.h, what is written here is independent of the code under test.
 */
#ifndef GGUFS_TESTS_OLD_FILE_H
#define GGUFS_TESTS_OLD_FILE_H

#include "tests/unit/gguf/model_file.h"

/* Every tensor's rows have one block of the type that files have most of. */
#define OLD_FILE_WIDTH  32u
#define OLD_FILE_LAYERS 2u
#define OLD_FILE_HEADS  4u
/* The rows of the tensors that tell how many heads keys have, and how wide feed-forward is. */
#define OLD_FILE_KV_ROWS      16u
#define OLD_FILE_FORWARD_ROWS 3u

struct old_file {
    const char *magic; /* as it lies in the file: "tjgg" */
    uint32_t version;  /* 0: none */
    const char *family;
    uint32_t file_type;
    uint32_t type;        /* of the tensors */
    uint32_t block_bytes; /* of OLD_FILE_WIDTH elements */
    bool without_tensors;
};

/* Return a file of the kind at `index`, or NULL past the last. */
const struct old_file *old_file_at(size_t index);

/* Make the file. The caller frees the bytes. Aborts if memory is short. */
struct model_bytes old_file_make(const struct old_file *file);

/* Return the offset at which the file's vocabulary ends and its tensors begin. */
size_t old_file_tensors_offset(const struct old_file *file);

/* A file of rwkv.cpp: "4", "5.1", "5.2", "6" or "7". */
struct model_bytes old_file_make_rwkv(uint32_t version, const char *architecture, uint32_t type,
                                      uint32_t block_bytes);

#endif
