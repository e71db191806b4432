/* ggufs --cat and --info: contents of files of a tree. */
#ifndef GGUFS_FS_CAT_H
#define GGUFS_FS_CAT_H

#include "fs/command/options.h"

/* Write the files that options->paths name to stdout. Returns the exit status. */
int fs_cat(const struct fs_options *options);

/* Write summary.txt of every model to stdout. Returns the exit status. */
int fs_info(const struct fs_options *options);

#endif
