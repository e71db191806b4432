/* Mounts a FUSE session on a directory. */
#pragma once

#include "fs/mount/mountpoint.h"

/* How far the kernel reads ahead of a sequential reader; FUSE's default is 128 KiB. */
#define FS_READ_AHEAD_BYTES (512u << 10)

struct fuse_session;

/*
 * Mount a session, which nobody serves yet, on an open directory. As root, also lets the kernel
 * read FS_READ_AHEAD_BYTES ahead. Leaves "/" as the working directory. Returns an exit status, and
 * prints the error if that is not EX_OK.
 */
int fs_attach(struct fuse_session *session, const struct fs_mountpoint *mountpoint);
