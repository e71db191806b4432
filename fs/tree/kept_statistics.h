/*
 * The statistics of tensors that were computed last, for the files that show them. Their memory is
 * bounded. Any thread may call these functions.
 */
#ifndef GGUFS_FS_KEPT_STATISTICS_H
#define GGUFS_FS_KEPT_STATISTICS_H

#include "fs/tree/statistics.h"

struct fs_kept_statistics;

/* Return an empty store, or NULL if out of memory. */
struct fs_kept_statistics *fs_kept_statistics_make(const struct gguf_model *model);
void fs_kept_statistics_free(struct fs_kept_statistics *kept);

/*
 * Get the statistics of a tensor of the model: those kept, unless the model has changed since, else
 * from fs_statistics_compute(), whose errors it returns. Those of a growing source are not kept:
 * its generation stays the same while data arrive.
 */
int fs_kept_statistics_get(struct fs_kept_statistics *kept, const struct gguf_tensor *tensor,
                           const struct fs_interrupt *interrupt, struct fs_statistics *statistics);

#endif
