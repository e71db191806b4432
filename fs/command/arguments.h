/* The positional arguments of the command line: models, directories and paths. */
#pragma once

#include "fs/command/options.h"

/*
 * Assign the words of options->line to the members models, directory and paths, as options->command
 * requires. Several shards of one model count as one model. A model and a path may come in either
 * order: the argument that exists as a file is the model. Prints missing, surplus and
 * swapped arguments to stderr, with the command's line of the usage. Returns 0 or -EINVAL.
 */
int fs_arguments_assign(struct fs_options *options);
