/* Comparisons of times. */
#pragma once

#include <stdbool.h>
#include <time.h>

static inline bool gguf_is_same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* Return true if `a` is later than `b`. */
static inline bool gguf_is_later(struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}
