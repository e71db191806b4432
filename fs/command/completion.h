/* ggufs --complete, which the scripts in contrib/completion/ call. */
#ifndef GGUFS_FS_COMPLETION_H
#define GGUFS_FS_COMPLETION_H

#include <stdbool.h>

/* Return true if the command line is one for fs_complete(). */
bool fs_is_completion(int argc, char **argv);

/*
 * Print completions as option_completion.h describes: options, their values, and paths in the tree
 * of the model that the words name; without a model, the entries that every tree has at its root.
 */
int fs_complete(int argc, char **argv);

#endif
