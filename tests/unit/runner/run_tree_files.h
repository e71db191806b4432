/*
 * Small trees for the tests of the runner: files in a temporary directory, as in a mount of ggufs.
 */
#pragma once

#include "contrib/runner/engine/loader.h"
#include "contrib/runner/engine/pass.h"
#include "contrib/runner/tree/weights.h"

#include <stddef.h>
#include <stdint.h>

enum { RUN_FILES_MAX_TENSORS = 256 };

struct run_files {
    char path[64];
    int fd;          /* the tree, open */
    uint64_t random; /* state of the random numbers */
    struct {
        char name[64];
        float *values;
    } tensors[RUN_FILES_MAX_TENSORS]; /* tensors made by run_files_random() */
    size_t n_tensors;
};

/*
 * Make a tree without tensors, with an empty list in tensors.json, and start a team of threads to
 * compute with. run_files_remove() removes both.
 */
void run_files_make(struct run_files *files);
void run_files_remove(struct run_files *files);

/* Write a file of the tree and make its directories. */
void run_files_write(const struct run_files *files, const char *name, const void *bytes,
                     size_t n_bytes);
void run_files_write_text(const struct run_files *files, const char *name, const char *text);

/* Write the metadata. `text` is one JSON object; each member becomes a file in metadata/. */
void run_files_metadata(const struct run_files *files, const char *text);

/*
 * Write the keys that gguf/models/ requires of the architecture and that are not there yet, with
 * the usual value.
 */
void run_files_complete_keys(const struct run_files *files, const char *architecture);

/* Write a tensor of type F32. Unused dimensions are 0. */
void run_files_floats(const struct run_files *files, const char *name, uint64_t ne0, uint64_t ne1,
                      uint64_t ne2, const float *values);

/*
 * Write a tensor of random values from -scale to scale. Returns them, also for run_files_values().
 */
const float *run_files_random(struct run_files *files, const char *name, uint64_t ne0, uint64_t ne1,
                              uint64_t ne2, float scale);

/* Return the values of a tensor made by run_files_random(), or NULL for another name. */
const float *run_files_values(const struct run_files *files, const char *name);

/*
 * Write tensors.json of the tree at `root`: the directories in tensors/, also links, with their
 * infos.
 */
void run_files_list(const char *root);

/* Open the metadata, or fail the test. run_metadata_close() closes it. */
struct run_metadata *run_files_open_metadata(const struct run_files *files);

/* List the tensors and open the tree, or fail the test. */
struct run_tree run_files_open(const struct run_files *files);

/* Everything needed to load and run a part of an engine. */
struct run_part {
    struct run_tree tree;
    struct run_arena arena;
    struct run_scratch scratch;
    struct run_failure failure;
    struct run_loader loader; /* its prefix is empty */
};

void run_part_open(const struct run_files *files, struct run_part *part);
void run_part_close(struct run_part *part);
