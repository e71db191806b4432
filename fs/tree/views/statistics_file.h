/*
 * Files that show the statistics of a tensor. Their size does not depend on the statistics, which
 * are computed when the file is opened: opening can be interrupted, and asking for the size is
 * cheap.
 */
#ifndef GGUFS_FS_STATISTICS_FILE_H
#define GGUFS_FS_STATISTICS_FILE_H

#include "fs/tree/core/view_row.h"
#include "fs/tree/core/interrupt.h"
#include "fs/tree/data/statistics.h"

/* Write the file. The number of bytes must not depend on the statistics. */
typedef void fs_statistics_writer(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                                  const struct fs_statistics *statistics, struct fs_sink *sink);

/* Return the size of the file in bytes. */
uint64_t fs_statistics_file_size(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                                 fs_statistics_writer *write);

/*
 * Compute the statistics, unless they are cached, and add the file to an image. Returns 0 or the
 * error of fs_statistics_compute() or fs_image_add_made().
 */
int fs_statistics_file_build(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                             fs_statistics_writer *write, const struct fs_interrupt *interrupt,
                             struct fs_image *image);

#endif
