/* What -v adds to the log: files that are opened, and requests that take long. */
#ifndef GGUFS_FS_REQUEST_LOG_H
#define GGUFS_FS_REQUEST_LOG_H

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

struct fs_slow_request;

/* The process that made a request, and the time. All zero without -v. */
struct fs_request_origin {
    pid_t reader; /* 0 also if the reader is in a PID namespace that the server does not see */
    struct timespec time; /* CLOCK_MONOTONIC */
};

/* Call it when the request arrives. Any thread may call this. */
struct fs_request_origin fs_request_origin(fuse_req_t request);

/*
 * Log an open() or read() that is about to be answered with success: the opening, and the time if
 * that was at least a second. Any thread may call this.
 */
void fs_request_log(const struct fs_slow_request *slow, bool is_opening);

#endif
