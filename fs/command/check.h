/* ggufs --check: reports errors in model files, without a mount. */
#ifndef GGUFS_FS_CHECK_H
#define GGUFS_FS_CHECK_H

#include "fs/command/options.h"

/*
 * Check the models named on the command line. Prints a line for each finding, or one that says OK,
 * to stdout. Returns the exit status of the first model with an error, or EX_OK.
 */
int fs_check_models(const struct fs_options *options);

#endif
