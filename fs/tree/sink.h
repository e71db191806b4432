/*
 * Sinks: the output of writers. A sink keeps the bytes inside a window and only counts the others,
 * so the same writer gives the size of a text, any slice of it, and the whole.
 */
#ifndef GGUFS_FS_SINK_H
#define GGUFS_FS_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct fs_sink {
    uint64_t position; /* bytes written so far, kept or not */
    uint64_t from, to; /* the window: bytes before `from` and at or after `to` are dropped */
    char *out;         /* buffer for the window, to - from bytes */
};

/* Return a sink that starts at `position` and keeps nothing. */
static inline struct fs_sink fs_sink_that_counts(uint64_t position)
{
    return (struct fs_sink){position, UINT64_MAX, UINT64_MAX, NULL};
}

/* Return true if any of the next `n` bytes would be kept. */
static inline bool fs_sink_keeps(const struct fs_sink *sink, uint64_t n)
{
    return sink->position < sink->to && sink->position + n > sink->from;
}

/* Like fs_sink_write(), for bytes that the window may cut. */
void fs_sink_cut(struct fs_sink *sink, const void *bytes, size_t n);

static inline void fs_sink_write(struct fs_sink *sink, const void *bytes, size_t n)
{
    if (sink->position >= sink->from && sink->position <= sink->to &&
        n <= sink->to - sink->position) {
        if (n > 0)
            memcpy(sink->out + (sink->position - sink->from), bytes, n);
    } else {
        fs_sink_cut(sink, bytes, n);
    }
    sink->position += n;
}

static inline void fs_sink_literal(struct fs_sink *sink, const char *literal)
{
    fs_sink_write(sink, literal, strlen(literal));
}

/* Write a number in decimal digits. Much faster than fs_sink_print(). */
void fs_sink_unsigned(struct fs_sink *sink, uint64_t number);

/* Write like printf(), but at most 1023 bytes: what is longer is cut. */
void fs_sink_print(struct fs_sink *sink, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
