/* Reading all tensor data of a model to find what is broken in it. */
#ifndef GGUFS_FS_CHECK_DATA_H
#define GGUFS_FS_CHECK_DATA_H

#include "gguf/model.h"

/* Called now and then, from one thread at a time. Never NULL. */
typedef void fs_check_progress(void *user, uint64_t done_bytes, uint64_t total_bytes);

/*
 * Reads the data of all tensors, with as many threads as OpenMP takes, and reports as errors the
 * blocks whose values are not finite, which a NaN or an infinite scale makes, and data that can't
 * be read; of a growing file, it leaves out the tensors that are not complete. Neighbouring blocks
 * make one finding. The order is that of the tensors in the file. A note counts the tensors that
 * are all zeros. Returns 0 or the first error as a negative errno.
 */
int fs_check_data(const struct gguf_model *model, struct gguf_report *report,
                  fs_check_progress *progress, void *user);

#endif
