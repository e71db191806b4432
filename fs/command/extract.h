/* ggufs --extract: copies the tree, or a part of it, into a directory. */
#ifndef GGUFS_FS_EXTRACT_H
#define GGUFS_FS_EXTRACT_H

#include "fs/command/options.h"

/*
 * Write the files that options->paths name into options->directory, at the same paths as in the
 * tree. Makes the directory if it does not exist. Without paths, writes the metadata and all
 * tensors as stored, which is enough for ggufs-run. Writes nothing outside the directory and
 * follows no symbolic link in it. A file that exists already must have the same contents, unless
 * options->force is set. A file gets its name only when it is complete. Returns the exit status.
 */
int fs_extract(const struct fs_options *options);

#endif
