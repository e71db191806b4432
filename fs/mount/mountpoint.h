/* Why a mount can't work, told before it is tried. */
#ifndef GGUFS_FS_MOUNTPOINT_H
#define GGUFS_FS_MOUNTPOINT_H

#include "fs/mount/mount_options.h"

/*
 * Checks the mount point and what the system needs for a mount, and prints what is wrong and how to
 * mend it to stderr. Returns 0, or the exit status (sysexits.h).
 */
int fs_mountpoint_check(const char *path, const struct fs_mount_options *options);

#endif
