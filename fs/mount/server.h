/* State of a mounted tree: the tree, its options, and its counters. */
#pragma once

#define FUSE_USE_VERSION 314
#include "fs/mount/activity.h"
#include "fs/mount/changes.h"
#include "fs/mount/read_failures.h"
#include "fs/mount/request_workers.h"
#include "fs/tree/tree.h"

#include <stdbool.h>
#include <sys/types.h>

/* The user data of the session. */
struct fs_server {
    struct fs_tree *tree;
    fs_node_index root; /* the directory of the tree that is the root of the mount */
    uid_t uid;
    gid_t gid;
    mode_t mode_mask;         /* mask for the mode bits that are shown */
    uint32_t generation;      /* of all inodes but the root's; see inodes.h */
    unsigned max_read;        /* of the mount, in bytes; 0: the kernel's default */
    bool direct_io;           /* the kernel caches nothing */
    bool keep_cache;          /* the kernel keeps contents between opens */
    unsigned timeout_seconds; /* the keeper unmounts a tree that was idle for so long; 0: never */
    struct fs_activity *activity;
    struct fs_changes changes;
    struct fs_read_failures failures;
    struct fs_request_workers workers;
};
