/*
 * Lets the kernel read the model file itself where a file of the tree is that file, byte for byte
 * (FUSE passthrough, Linux 6.9). Such reads and mappings do not reach the server and share the page
 * cache of the model file. If it is overwritten or cut meanwhile, they get the new bytes or its new
 * end, without an error.
 *
 * libfuse has functions for this from 3.17 on; these work with 3.14 as well. The formats are those
 * of include/uapi/linux/fuse.h of Linux 6.9.
 */
#ifndef GGUFS_FS_PASSTHROUGH_H
#define GGUFS_FS_PASSTHROUGH_H

#include "fs/mount/requests.h"
#include "fs/tree/image.h"

#include <linux/fuse.h>
#include <stdint.h>
#include <sys/ioctl.h>

/* The device request that registers a file: FUSE_DEV_IOC_BACKING_OPEN and its argument. */
#define FS_PASSTHROUGH_REGISTER _IOW(FUSE_DEV_IOC_MAGIC, 1, struct fs_registration)

struct fs_registration {
    int32_t file; /* a descriptor */
    uint32_t flags;
    uint64_t padding;
};

/* Request passthrough in the answer to INIT; kernels that do not know it ignore that. */
void fs_passthrough_request(struct fuse_init_out *answer);

/*
 * Register the open file for passthrough on /dev/fuse, after the answer to INIT. Returns its id,
 * which is positive and valid as long as the mount is, or a negative errno. Needs CAP_SYS_ADMIN.
 */
int32_t fs_passthrough_register(int fuse_descriptor, int file);

/* The reason for an error of fs_passthrough_register(), for the user. */
const char *fs_passthrough_obstacle(int error);

/*
 * Return true if the file of the tree has exactly the bytes of the model file that the user named,
 * and that file is registered.
 */
bool fs_passthrough_fits(const struct fs_server *server, const struct fs_image *image);

/*
 * Reply to OPEN: the kernel reads the registered file. With `direct`, for O_DIRECT, it only maps
 * that file and sends reads to the server, because disks require them to be aligned. Returns what
 * fuse_reply_open() does.
 */
int fs_passthrough_reply_open(fuse_req_t request, uint64_t handle, int32_t id, bool direct);

#endif
