/* A mount from its start to its end. */
#ifndef GGUFS_FS_SERVE_H
#define GGUFS_FS_SERVE_H

#include "fs/options.h"
#include "fs/tree.h"

/*
 * Mounts the tree on `mountpoint` and has it served by processes of their own (fs/daemon.h) until
 * it is unmounted or a signal ends it. Returns the exit status (sysexits.h): when the tree is
 * there, or, with options->foreground, when it is gone. Prints what goes wrong to stderr.
 */
int fs_serve(struct fs_tree *tree, const char *mountpoint, struct fs_options *options);

#endif
