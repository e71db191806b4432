/* Limits how fast a log grows: whoever reads a mount can cause records, as often as they like. */
#ifndef GGUFS_FS_LOG_LIMIT_H
#define GGUFS_FS_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* At most so many records are written in a period. */
#define FS_LOG_LIMIT_RECORDS 200u
#define FS_LOG_LIMIT_SECONDS 10

struct fs_log_limit {
    time_t start;    /* of the current period, in seconds of any clock that never goes back */
    unsigned n;      /* records in this period */
    uint64_t n_lost; /* records that were not written since the last that was */
};

/*
 * Return true if a record may be written `now`, and store in *n_lost how many were lost before it.
 * The caller counts a record that it could not write by fs_log_limit_lose().
 */
bool fs_log_limit_take(struct fs_log_limit *limit, time_t now, uint64_t *n_lost);
void fs_log_limit_lose(struct fs_log_limit *limit, uint64_t n);

#endif
