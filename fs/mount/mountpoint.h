/* The directory to mount on, and the system's support for mounting. */
#ifndef GGUFS_FS_MOUNTPOINT_H
#define GGUFS_FS_MOUNTPOINT_H

#include "fs/mount/mount_options.h"

#include <stdint.h>

struct fs_mountpoint {
    char *path;     /* absolute, without symbolic links; owned */
    int descriptor; /* O_PATH, of the directory; -1 if it is not there yet, or closed */
    int parent;     /* O_PATH, of the directory in which a missing one is made; else -1 */

    bool is_made;           /* fs_mountpoint_make() made the directory, … */
    uint64_t device, inode; /* … which is this one, … */
    int lock;               /* … open and locked until the end of its keeper; else -1 */
};

/*
 * Open the mount point and check it and the system. The directory is looked up once, so nobody who
 * can write to its parent can replace it afterwards. A symbolic link as the last component is
 * followed only if it belongs to the caller or to root. If there is no such directory, its parent
 * must exist and let the caller make it. If the keeper of an earlier mount is about to remove the
 * directory, wait for that, for some seconds at most. Returns EX_OK, after which
 * fs_mountpoint_close() must be called; or prints the error and a remedy to stderr and returns the
 * exit status (sysexits.h).
 */
int fs_mountpoint_open(const char *path, const struct fs_mount_options *options,
                       struct fs_mountpoint *mountpoint);

/*
 * Make a missing directory, and one that the keeper of an earlier mount has removed since it was
 * opened. The directory stays locked (flock(2)) until fs_mountpoint_close(). Returns EX_OK, or
 * prints the error and returns the exit status.
 */
int fs_mountpoint_make(struct fs_mountpoint *mountpoint);

/*
 * Remove the directory if fs_mountpoint_make() made it, and it is still at its path and empty.
 * Works after fs_mountpoint_close_descriptors(), in a process that may do nothing else with files.
 */
void fs_mountpoint_remove(const struct fs_mountpoint *mountpoint);

/*
 * Call this once the mount is made: from then on the kernel lets nobody rename the directory. If it
 * was renamed before, unmount it, print that, and return an exit status other than EX_OK: another
 * directory may have the path, and the user could not find the mount.
 */
int fs_mountpoint_check_place(const struct fs_mountpoint *mountpoint);

/*
 * Close all but the lock. While a process holds the directory under a mount open, or its parent,
 * the disk that they are on cannot be unmounted.
 */
void fs_mountpoint_close_descriptors(struct fs_mountpoint *mountpoint);

void fs_mountpoint_close(struct fs_mountpoint *mountpoint);

/* Print a likely remedy after the system refused to mount with `error`, an errno. */
void fs_mountpoint_explain_refusal(const struct fs_mountpoint *mountpoint, int error);

#endif
