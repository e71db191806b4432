/* Answers the kernel's requests, which come through libfuse's low-level API, from the tree. */
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

/* The user data of the session is a struct fs_server (fs/mount/server.h). */
extern const struct fuse_lowlevel_ops fs_requests;

/* Handlers of requests about open files; see fuse_lowlevel.h. */
void fs_on_open(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info);
void fs_on_read(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
                struct fuse_file_info *info);
void fs_on_release(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info);
void fs_on_ioctl(fuse_req_t request, fuse_ino_t inode, unsigned command, void *argument,
                 struct fuse_file_info *info, unsigned flags, const void *in, size_t in_size,
                 size_t out_size);

/*
 * The status of a mount, as `ggufs --status` shows it: an extended attribute of the root, which
 * listxattr(2) does not list. Its value is text with lines "NAME VALUE". Other versions may add,
 * rename or omit lines.
 */
#define FS_STATUS_ATTRIBUTE "user.ggufs.status"
