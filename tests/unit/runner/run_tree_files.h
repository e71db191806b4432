/*
 * Small trees in a temporary directory, as a mount of ggufs shows them: what the tests of the
 * runner read.
 */
#ifndef GGUFS_TESTS_RUN_TREE_FILES_H
#define GGUFS_TESTS_RUN_TREE_FILES_H

#include "contrib/runner/engine/loader.h"
#include "contrib/runner/engine/pass.h"
#include "contrib/runner/tree/open_tree.h"

#include <stddef.h>
#include <stdint.h>

enum { RUN_FILES_MAX_TENSORS = 256 };

struct run_files {
    char path[64];
    uint64_t random; /* where random values go on */
    struct {
        char name[64];
        float *values;
    } tensors[RUN_FILES_MAX_TENSORS]; /* what run_files_random() made */
    size_t n_tensors;
};

/* Makes an empty tree, with the directory tensors/ and a tensors.json that demands nothing; removes
 * it again. */
void run_files_make(struct run_files *files);
void run_files_remove(struct run_files *files);

/* Writes a file of the tree, whose directories are made. */
void run_files_write(const struct run_files *files, const char *name, const void *bytes,
                     size_t n_bytes);
void run_files_write_text(const struct run_files *files, const char *name, const char *text);

/* Writes the metadata: `text` is one JSON object, whose members become files of metadata/. */
void run_files_metadata(const struct run_files *files, const char *text);

/* Writes info and raw of a tensor; dimensions after the last are 0. */
void run_files_tensor(const struct run_files *files, const char *name, uint32_t type,
                      const uint64_t ne[RUN_MAX_DIMS], const void *raw, size_t n_bytes);

/* A tensor of floats; dimensions that are not there are 0. */
void run_files_floats(const struct run_files *files, const char *name, uint64_t ne0, uint64_t ne1,
                      uint64_t ne2, const float *values);

/* The same of random values from -scale to scale, which are kept for run_files_values(). */
const float *run_files_random(struct run_files *files, const char *name, uint64_t ne0, uint64_t ne1,
                              uint64_t ne2, float scale);

/* The values of a tensor that run_files_random() made; NULL if there is none of that name. */
const float *run_files_values(const struct run_files *files, const char *name);

/* Opens the tree, which must succeed. */
struct run_tree run_files_open(const struct run_files *files);

/* The context in which parts of an engine are loaded and run. */
struct run_part {
    struct run_tree tree;
    struct run_arena arena;
    struct run_scratch scratch;
    struct run_failure failure;
    struct run_loader loader; /* without prefix */
};

void run_part_open(const struct run_files *files, struct run_part *part);
void run_part_close(struct run_part *part);

#endif
