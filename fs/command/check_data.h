/* Reads all tensor data of a model to find values that are not finite and unreadable data. */
#pragma once

#include "gguf/model.h"
#include "gguf/support/progress.h"

/*
 * Read the data of all tensors, in a thread per processor. Reports as errors the tensors
 * with NaN or infinite values (from a NaN or an infinite scale) and those that cannot be read, in
 * the order of the model. In a growing file, incomplete tensors are skipped. A warning counts the
 * tensors that hold only zeros. Draws the progress unless it is all zero. Returns 0 or the first
 * error as a negative errno.
 */
int fs_check_data(const struct gguf_model *model, struct gguf_report *report,
                  struct gguf_progress *progress);
