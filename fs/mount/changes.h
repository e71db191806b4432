/*
 * Detects model files that are written to while mounted. If their headers are unchanged, the tree
 * stays, and the kernel's cached contents and times are invalidated. Any thread may call the
 * functions below fs_changes_end().
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
    bool is_reporting;
    unsigned generation;      /* of the model, as last reported to the kernel */
    struct timespec modified; /* modification time of all nodes */
};

/* Record the model's state. Call fs_changes_end() last. `first_inode` is the root's. */
void fs_changes_begin(struct fs_changes *changes, const struct fs_tree *tree, uint64_t first_inode,
                      struct fuse_session *session);
void fs_changes_end(struct fs_changes *changes);

/* Return true if gguf_file_check() has found a change that the kernel was not notified of. */
bool fs_changes_are_new(struct fs_changes *changes);

/*
 * Notify the kernel of changes, unless another thread is doing that. Call it after the reply to a
 * request, which the kernel may wait for.
 */
void fs_changes_report(struct fs_changes *changes);

/* Return the time of the last change. */
struct timespec fs_changes_modified(struct fs_changes *changes);
