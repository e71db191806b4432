/* The words of the command line that are no options: which is the model, which a path. */
#ifndef GGUFS_FS_ARGUMENTS_H
#define GGUFS_FS_ARGUMENTS_H

#include "fs/command/options.h"

/*
 * Assign options->arguments to the members models, directory and paths, as options->command needs
 * them. Several shards of one model count as one model. Where the order of a model and a path is
 * clear from which of them exists, either order is accepted. Prints what is missing or too many to
 * stderr. Returns 0 or -EINVAL.
 */
int fs_arguments_assign(struct fs_options *options);

#endif
