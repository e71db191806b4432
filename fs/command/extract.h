/* ggufs --extract: a copy of the tree, or of a part of it, in a directory. */
#ifndef GGUFS_FS_EXTRACT_H
#define GGUFS_FS_EXTRACT_H

#include "fs/command/options.h"

/*
 * Write the files that options->paths name into options->directory, which is made if it is not
 * there, at the same paths as in the tree. Without paths, these are the metadata and all tensors as
 * they are stored, enough for ggufs-run. Nothing outside the directory is written and no symbolic
 * link in it is followed. A file that is there already must have the same contents, unless
 * options->force is set. A file appears under its name once it is complete. Returns the exit
 * status.
 */
int fs_extract(const struct fs_options *options);

#endif
