/* ggufs --stats: the statistics of a model's tensors. */
#ifndef GGUFS_FS_STATS_H
#define GGUFS_FS_STATS_H

#include "fs/command/options.h"

/*
 * Print a line for each tensor that options->paths choose, as a table or as JSON. Returns the exit
 * status, after printing errors to stderr.
 */
int fs_stats(const struct fs_options *options);

#endif
