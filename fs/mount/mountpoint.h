/* The directory to mount on, and the system's support for mounting. */
#pragma once

#include "fs/mount/mount_options.h"

#include <stdbool.h>

/* How far the kernel reads ahead of a sequential reader; FUSE's default is 128 KiB. */
#define FS_READ_AHEAD_BYTES (512u << 10)

struct fuse_session;

struct fs_mountpoint {
    char *path;     /* absolute, without symbolic links; owned */
    int descriptor; /* O_PATH, of the directory; -1 if closed */
    bool is_made;   /* fs_mountpoint_open() made the directory */
};

/*
 * Open the mount point and check it and the system. The directory is looked up once, so nobody who
 * can write to its parent can replace it afterwards. A missing directory is made; its parent must
 * exist. Returns EX_OK, after which fs_mountpoint_close() must be called; or prints the error and a
 * remedy to stderr and returns the exit status (sysexits.h).
 */
int fs_mountpoint_open(const char *path, const struct fs_mount_options *options,
                       struct fs_mountpoint *mountpoint);

/*
 * Mount a session, which nobody serves yet, on the directory. As root, also lets the kernel read
 * FS_READ_AHEAD_BYTES ahead. Leaves "/" as the working directory. Returns an exit status, and
 * prints the error if that is not EX_OK.
 */
int fs_mountpoint_mount(const struct fs_mountpoint *mountpoint, struct fuse_session *session);

/* After a failure, remove the directory if fs_mountpoint_open() made it and it is empty. */
void fs_mountpoint_remove(const struct fs_mountpoint *mountpoint);

/*
 * Close the descriptor. While a process holds the directory under a mount open, the disk that it is
 * on cannot be unmounted.
 */
void fs_mountpoint_close_descriptor(struct fs_mountpoint *mountpoint);

void fs_mountpoint_close(struct fs_mountpoint *mountpoint);
