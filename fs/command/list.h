/* ggufs --list: the files of a tree. */
#ifndef GGUFS_FS_LIST_H
#define GGUFS_FS_LIST_H

#include "fs/command/options.h"

/*
 * Print a line for every file and link of the tree, or of what options->paths name: its size in
 * bytes and its path. Returns the exit status.
 */
int fs_list(const struct fs_options *options);

#endif
