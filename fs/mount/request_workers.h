/*
 * Answers requests that may take long, or never end: those that compute for minutes, and those that
 * read the model's files, whose disk or network file system may stall.
 *
 * libfuse has a fixed number of threads. If slow requests occupied all of them, no thread would
 * handle other requests, FUSE_INTERRUPT or the end of the mount. A killed reader waits until its
 * request is answered. A thread that waits for a disk cannot answer, so another thread does.
 */
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

struct fs_server;
struct fs_shown;
struct fs_slow_request;

struct fs_request_workers {
    struct fuse_session *session;
    unsigned n_threads; /* of libfuse that may answer slow requests at a time */

    pthread_mutex_t lock;   /* protects the members below */
    pthread_cond_t changed; /* n_busy or n_running became smaller */
    unsigned n_busy;        /* answered in threads of libfuse */
    unsigned n_running;     /* answered in threads of their own */
    bool is_stalled;        /* all n_threads are busy, and none ended within the last wait */

    struct fs_slow_request *interrupted; /* the oldest first */
    pthread_cond_t wake;                 /* the list or should_stop changed */
    pthread_t watcher;                   /* answers interrupted requests */
    bool has_watcher;
    bool should_stop;
};

/* An open(), read() or ioctl(). */
struct fs_slow_request {
    struct fs_server *server;
    fuse_req_t request;
    fuse_ino_t inode;
    struct fs_shown *shown; /* of an open() */
    size_t size;
    off_t offset;
    struct fuse_file_info info;

    /* Must call fs_slow_request_end(), and reply only if that returns true. */
    void (*answer)(struct fs_slow_request *slow);
    /*
     * Optional: called in another thread before the request fails with EINTR, after which the
     * kernel may release what `answer` uses. `answer` must give back what this takes.
     */
    void (*hold)(struct fs_slow_request *slow);

    /* Set by the functions below. */
    struct fs_request_workers *requests;
    atomic_int state;
    struct timespec interrupted_at;
    struct fs_slow_request *next;
};

/*
 * Answer up to n_threads requests at a time in threads of libfuse, which must have at least one
 * thread more. UINT_MAX: no limit.
 */
void fs_request_workers_begin(struct fs_request_workers *requests, struct fuse_session *session,
                              unsigned n_threads);

/*
 * Answer a request in this thread or, if n_threads are busy and none becomes free soon, in a thread
 * of its own. Call it in a thread of libfuse.
 */
void fs_request_workers_answer(struct fs_request_workers *requests,
                               const struct fs_slow_request *slow);

/*
 * Answer a copy of the request in a new thread; if none can be started, in this one. Any thread may
 * call this.
 */
void fs_request_workers_add(struct fs_request_workers *requests,
                            const struct fs_slow_request *slow);

/*
 * Return true if nobody waits for the answer any more. The condition of a struct fs_interrupt,
 * whose user is the request.
 */
bool fs_slow_request_is_given_up(void *slow);

/*
 * The answer is known. Return true if the caller must reply. Otherwise the request has failed with
 * EINTR, and no longer exists in the kernel.
 */
bool fs_slow_request_end(struct fs_slow_request *slow);

/* Wait until all have been answered. No thread may add one any more. */
void fs_request_workers_end(struct fs_request_workers *requests);
