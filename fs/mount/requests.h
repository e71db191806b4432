/* The glue: what the kernel asks for through libfuse's low-level API, answered from the tree. */
#ifndef GGUFS_FS_REQUESTS_H
#define GGUFS_FS_REQUESTS_H

#define FUSE_USE_VERSION 314
#include "fs/mount/changes.h"
#include "fs/mount/read_failures.h"
#include "fs/tree/tree.h"

#include <fuse_lowlevel.h>

#include <stdbool.h>
#include <sys/types.h>

/* The user data of the session. */
struct fs_server {
    struct fs_tree *tree;
    uid_t uid;
    gid_t gid;
    mode_t mode_mask;  /* the bits of a mode that are shown */
    unsigned max_read; /* as the mount has it, in bytes; 0 for the kernel's default */
    bool direct_io;    /* the kernel keeps nothing */
    bool keep_cache;   /* of one open file for the next */
    struct fs_changes changes;
    struct fs_read_failures failures;
};

extern const struct fuse_lowlevel_ops fs_requests;

#endif
