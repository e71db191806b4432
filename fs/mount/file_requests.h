/* Requests about open files: open(), read(), release(), and ioctl(); see fuse_lowlevel.h. */
#ifndef GGUFS_FS_FILE_REQUESTS_H
#define GGUFS_FS_FILE_REQUESTS_H

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

void fs_on_open(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info);
void fs_on_read(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
                struct fuse_file_info *info);
void fs_on_release(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info);
void fs_on_ioctl(fuse_req_t request, fuse_ino_t inode, unsigned command, void *argument,
                 struct fuse_file_info *info, unsigned flags, const void *in, size_t in_size,
                 size_t out_size);

#endif
