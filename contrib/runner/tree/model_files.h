/*
 * The model files behind a mounted tree, mapped directly, so that the pages of the model are in
 * memory once, and not again as pages of the tree. A ggufs mount gives their location
 * (gguf/support/source_location.h). It is used only if the caller or root made the mount and the
 * file has the bytes of the tree. Other trees, for example copies, have no model files.
 *
 * All zeros is an empty list. Call all functions from one thread at a time.
 */
#pragma once

#include "contrib/runner/tree/failure.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The place of a tensor's bytes in a model file. */
struct run_place {
    const char *file; /* the file's name without directory, which must stay; "": unknown */
    uint64_t offset;
};

struct run_model_files {
    struct run_model_file *list;
    size_t n, room;
    bool is_trusted; /* the mount with device number `device` names model files */
    dev_t device;
};

/*
 * Trust the location of model files that the mount of an open directory gives; the caller or root
 * must have made that mount. Without this call no model file is opened.
 */
void run_model_files_trust(struct run_model_files *files, int tree_fd);

/*
 * Open and map the model file of a tensor whose file `raw` is open as `raw_fd`, unless that was
 * tried before. If the file cannot be opened or is not the file that was mounted, it is not used,
 * and this is not a failure.
 */
void run_model_files_open(struct run_model_files *files, const struct run_place *place, int raw_fd);

/*
 * Return the n_bytes of a tensor in its model file, valid until run_model_files_close(), or NULL if
 * that file is not open.
 */
const uint8_t *run_model_files_bytes(const struct run_model_files *files,
                                     const struct run_place *place, uint64_t n_bytes);

/*
 * Check that no file has changed its size or header since the opening, as reading the tree does.
 * Data and times may change. Returns 0 or -EIO. Cheap; works in a confined process.
 */
int run_model_files_check(struct run_model_files *files, struct run_failure *failure);

/* Unmap and close all files. */
void run_model_files_close(struct run_model_files *files);
