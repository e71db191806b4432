/* The status of an open file, asked for in a way that a confined process may use. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct gguf_file_status {
    uint64_t device, inode; /* as in struct stat; together they identify the file */
    uint64_t size_bytes;
    struct timespec modified;       /* contents; a user can set this time */
    struct timespec status_changed; /* contents, times, mode …; nobody can set this time */
};

/*
 * Ask for the status of an open file. Unlike fstat(), which the C library may turn into a system
 * call that can name a path, this works after gguf_confine(). Return 0 or a negative errno. Any
 * thread may call it.
 */
int gguf_get_file_status(int descriptor, struct gguf_file_status *status);

static inline bool gguf_is_same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* Return true if `a` is later than `b`. */
static inline bool gguf_is_later(struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}
