/*
 * Model files that are written to while they are mounted: if their headers stay as they were, the
 * tree goes on, and the kernel must forget the contents and times that it has cached. A thread of
 * its own tells it so, because the kernel may wait for the answer to a read meanwhile.
 */
#ifndef GGUFS_FS_CHANGES_H
#define GGUFS_FS_CHANGES_H

#define FUSE_USE_VERSION 314
#include "fs/tree/tree.h"

#include <fuse_lowlevel.h>

#include <pthread.h>
#include <stdbool.h>

struct fs_changes {
    const struct fs_tree *tree;
    struct fuse_session *session;
    pthread_t thread;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wake;
    bool is_started, should_stop;
    unsigned generation;      /* of the model, as the kernel knows it */
    struct timespec modified; /* the time that all nodes show */
};

/* Note the model's state. fs_changes_end() must be called. */
void fs_changes_begin(struct fs_changes *changes, const struct fs_tree *tree,
                      struct fuse_session *session);
void fs_changes_end(struct fs_changes *changes);

/* Stop the thread, if there is one. */
void fs_changes_stop(struct fs_changes *changes);

/*
 * Look whether gguf_source_check() has found a change that the kernel does not know of; if so, wake
 * the thread, which the first change starts, and return true. Any thread may call this.
 */
bool fs_changes_notice(struct fs_changes *changes);

/* The time of the last change. Any thread may call this. */
struct timespec fs_changes_modified(struct fs_changes *changes);

#endif
