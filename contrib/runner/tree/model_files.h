/*
 * The model files that a mounted tree was made from, mapped directly: then the pages of the model
 * are in memory once, and not again as pages of the tree. Only a mount of ggufs on this machine
 * says where they lie, and only if their bytes are those of the tree; see
 * gguf/support/source_location.h. Other trees, such as copies, have no model files.
 *
 * All zeros is an empty list. Call all functions from one thread at a time.
 */
#ifndef GGUFS_RUNNER_MODEL_FILES_H
#define GGUFS_RUNNER_MODEL_FILES_H

#include "contrib/runner/tree/failure.h"
#include "contrib/runner/tree/info_file.h"

#include <stddef.h>
#include <stdint.h>

struct run_model_files {
    struct run_model_file *list;
    size_t n, room;
};

/*
 * Open and map the model file of a tensor whose file `raw` is open as `raw_fd`, unless that was
 * tried before. The file is not used if it cannot be opened, or is another one than that of the
 * mount; this is no failure.
 */
void run_model_files_open(struct run_model_files *files, const struct run_place *place, int raw_fd);

/*
 * Return the n_bytes of a tensor in its model file, valid until run_model_files_close(), or NULL if
 * that file is not open.
 */
const uint8_t *run_model_files_bytes(const struct run_model_files *files,
                                     const struct run_place *place, uint64_t n_bytes);

/*
 * Check that no file has changed since the opening, as reading the tree does: data and times may
 * change, but not the size and the header. Returns 0 or -EIO. This is cheap and works in a confined
 * process.
 */
int run_model_files_check(struct run_model_files *files, struct run_failure *failure);

/* Unmap and close all files. */
void run_model_files_close(struct run_model_files *files);

#endif
