/* A mount from its start to its end. */
#ifndef GGUFS_FS_SERVE_H
#define GGUFS_FS_SERVE_H

#include "fs/mount/mount_options.h"
#include "fs/tree/tree.h"

/*
 * Mounts the tree on `mountpoint` and has it served by processes of their own (fs/mount/daemon.h)
 * until it is unmounted or a signal ends it. Returns the exit status (sysexits.h): when the tree is
 * there, or, with options->foreground, when it is gone. Prints what goes wrong to stderr.
 */
int fs_serve(struct fs_tree *tree, const char *mountpoint, struct fs_mount_options *options);

#endif
