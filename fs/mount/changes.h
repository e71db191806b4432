/*
 * Detects model files that are written to while mounted. If their headers are unchanged, the tree
 * stays, and the kernel's cached contents and times are invalidated. A separate thread, started at
 * the first change, does this, because the kernel may wait meanwhile for the answer to a read.
 */
#pragma once

#define FUSE_USE_VERSION 314
#include "fs/tree/tree.h"

#include <fuse_lowlevel.h>

#include <pthread.h>
#include <stdbool.h>

struct fs_changes {
    const struct fs_tree *tree;
    uint64_t first_inode; /* of the tree */
    struct fuse_session *session;

    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t wake;
    pthread_t thread;
    bool is_started;
    bool should_stop;
    unsigned generation;      /* of the model, as last reported to the kernel */
    struct timespec modified; /* modification time of all nodes */
};

/* Record the model's state. Call fs_changes_end() last. `first_inode` is that of the tree's root.
 */
void fs_changes_begin(struct fs_changes *changes, const struct fs_tree *tree, uint64_t first_inode,
                      struct fuse_session *session);
void fs_changes_end(struct fs_changes *changes);

/* End the thread, if it was started. Changes are no longer noticed. */
void fs_changes_stop(struct fs_changes *changes);

/*
 * Return true if gguf_file_check() has found a change that the kernel was not notified of, and
 * wake the thread to notify it. Any thread may call this.
 */
bool fs_changes_notice(struct fs_changes *changes);

/* Return the time of the last change. Any thread may call this. */
struct timespec fs_changes_modified(struct fs_changes *changes);
