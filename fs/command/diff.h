/* ggufs --diff: compares two models. */
#ifndef GGUFS_FS_DIFF_H
#define GGUFS_FS_DIFF_H

#include "fs/command/options.h"

/*
 * Compare the two options->models and print what differs. Returns the exit status, like diff(1): 0
 * if nothing differs, 1 if something does, more if something cannot be read.
 */
int fs_diff(const struct fs_options *options);

#endif
