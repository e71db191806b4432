/* Answers the kernel's requests, which come through libfuse's low-level API, from the tree. */
#ifndef GGUFS_FS_REQUESTS_H
#define GGUFS_FS_REQUESTS_H

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

/* The user data of the session is a struct fs_server (fs/mount/server.h). */
extern const struct fuse_lowlevel_ops fs_requests;

#endif
