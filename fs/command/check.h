/* ggufs --check: what is wrong with a model file, without a mount. */
#ifndef GGUFS_FS_CHECK_H
#define GGUFS_FS_CHECK_H

#include "fs/command/options.h"

/*
 * Checks the models named on the command line and prints a line per finding, or one that says OK,
 * to stdout. Returns the exit status: that of the first model with an error, else EX_OK.
 */
int fs_check_models(const struct fs_options *options);

#endif
