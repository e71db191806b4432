/*
 * Answers requests that can take minutes in threads of their own. libfuse has a fixed number of
 * threads: while slow requests occupy all of them, nobody takes the others, nor the kernel's word
 * that the reader of a slow one was killed.
 */
#ifndef GGUFS_FS_SLOW_REQUESTS_H
#define GGUFS_FS_SLOW_REQUESTS_H

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include <pthread.h>

struct fs_slow_requests {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* none is being answered any more */
    unsigned n_running;     /* protected by the lock */
};

/* The arguments of an open() or a read(). */
struct fs_slow_request {
    fuse_req_t request;
    fuse_ino_t inode;
    size_t size;
    off_t offset;
    struct fuse_file_info info;
    void (*answer)(struct fs_slow_request *slow); /* must reply */
};

void fs_slow_requests_begin(struct fs_slow_requests *requests);

/*
 * Answer a copy of the request in a new thread; if none can be started, in this one. Any thread may
 * call this.
 */
void fs_slow_requests_add(struct fs_slow_requests *requests, const struct fs_slow_request *slow);

/* Wait until all have been answered. No thread may add one any more. */
void fs_slow_requests_end(struct fs_slow_requests *requests);

#endif
