/* Reads all tensor data of a model to find values that are not finite and unreadable data. */
#pragma once

#include "gguf/model.h"

/*
 * Receive the progress, in stored bytes. Called from time to time, by one thread at a time. Never
 * NULL.
 */
typedef void fs_check_progress(void *user, uint64_t done_bytes, uint64_t total_bytes);

/*
 * Read the data of all tensors, in a thread per processor. Reports as errors the tensors
 * with NaN or infinite values (from a NaN or an infinite scale) and those that cannot be read, in
 * the order of the model. In a growing file, incomplete tensors are skipped. A warning counts the
 * tensors that hold only zeros. Returns 0 or the first error as a negative errno.
 */
int fs_check_data(const struct gguf_model *model, struct gguf_report *report,
                  fs_check_progress *progress, void *user);
