/* The statistics of a tensor, as JSON. */
#ifndef GGUFS_FS_STATS_JSON_H
#define GGUFS_FS_STATS_JSON_H

#include "fs/tree/core/view_row.h"
#include "fs/tree/core/interrupt.h"
#include "fs/tree/data/statistics.h"

/*
 * tensors/<tensor>/stats.json, members of struct fs_view. Each line is padded with blanks, so that
 * the size is known before the statistics are. The tensor's data are read when the file is opened.
 */
int fs_stats_json_size(const struct fs_tree *tree, const void *tensor, uint64_t *size_bytes);
int fs_stats_json_build(const struct fs_tree *tree, const void *tensor,
                        const struct fs_interrupt *interrupt, struct fs_image *image);

/* Write the members of the object on one line, each after a comma. */
void fs_stats_json_write_members(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                                 const struct fs_statistics *statistics, struct fs_sink *sink);

#endif
