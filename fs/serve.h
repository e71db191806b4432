/* The FUSE side: a thin glue from libfuse's low-level requests to the tree. */
#ifndef GGUFS_FS_SERVE_H
#define GGUFS_FS_SERVE_H

#include "fs/options.h"
#include "fs/tree.h"

/*
 * Mounts the tree on `mountpoint` and serves it until it is unmounted or a signal ends it. Unless
 * options->foreground, the caller's process exits with status 0 once the tree is there, and this
 * returns in a daemon. Prints what goes wrong to stderr. Returns the exit status (sysexits.h).
 */
int fs_serve(struct fs_tree *tree, const char *mountpoint, struct fs_options *options);

#endif
