/* State of a mount: the trees that it shows, its options, and its counters. */
#pragma once

#define FUSE_USE_VERSION 314
#include "fs/mount/activity.h"
#include "fs/mount/changes.h"
#include "fs/mount/mount_options.h"
#include "fs/models/model_set.h"

#include <fuse_lowlevel.h>

#include <stdatomic.h>
#include <stdbool.h>

/* Causes of failed reads that are no file: they follow the files in are_logged. */
enum { FS_OF_MEMORY, FS_OF_LENGTH, FS_N_OTHER_CAUSES };

/* A tree that is shown: the mounted one, or of many models one that is open. */
struct fs_shown {
    struct fs_tree *tree; /* its `user` is this */
    fs_node_index root;   /* the directory of the tree that is shown as its root */
    uint64_t base;        /* of its inode numbers; see inodes.h */
    uint32_t generation;  /* of all inodes but the mount's root */
    bool is_lasting;      /* the kernel may remember names and attributes until it is told */
    struct fs_changes changes;
    atomic_bool *are_logged; /* causes of failed reads: the files, and others; owned */
};

/* The user data of the session. */
struct fs_server {
    struct fs_shown shown;    /* the mounted tree, unless `set` has many */
    struct fs_model_set *set; /* NULL: a single tree */
    struct fuse_session *session;
    const struct fs_mount_options *options;
    struct fs_activity *activity;
    _Atomic uint64_t n_failures; /* requests, without those that a signal interrupted */
};

/*
 * Show a tree, whose `user` is set: 0 or -ENOMEM. Hide it before it is freed.
 */
int fs_show(struct fs_server *server, struct fs_shown *shown, struct fs_tree *tree);
void fs_hide(struct fs_shown *shown);

/*
 * Count that a request about `node` failed with `code`, a negative errno, and log the first failure
 * of each cause: the reader gets only an errno. Any thread may call this.
 */
void fs_report_read_failure(struct fs_server *server, struct fs_shown *shown, fs_node_index node,
                            int code);

/*
 * Get the tree of an inode, for fs_leave(). Returns 0, or -ESTALE and others of
 * fs_model_set_enter().
 */
static inline int fs_enter(struct fs_server *server, uint64_t inode, struct fs_shown **shown)
{
    struct fs_tree *tree;
    int result;

    *shown = &server->shown;
    if (!server->set)
        return 0;
    result = fs_model_set_enter(server->set, (uint32_t)(inode >> 32), &tree);
    if (result == 0)
        *shown = tree->user;
    return result;
}

static inline void fs_leave(struct fs_server *server, struct fs_shown *shown)
{
    if (server->set)
        fs_model_set_leave(server->set, shown->tree);
}
