/*
 * Sinks: the output of writers. A sink counts the bytes that are written to it, and keeps them in
 * an array of the caller, in a buffer that grows, or nowhere, so that one writer gives both a text
 * and its size.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct fs_sink {
    uint64_t position; /* bytes written so far, kept or not */
    uint64_t to;       /* room in `out`: writes that reach this position go to fs_sink_keep() */
    char *out;         /* the bytes that are kept; NULL if there are none */

    /* The members below are set by fs_sink_that_grows() or fs_sink_that_counts(). */
    uint64_t limit; /* the most bytes that a buffer may grow to; 0: it does not grow */
    uint64_t size;  /* allocated bytes of a buffer that grows */
    int error;      /* 0 or a negative errno; once it is set, nothing is kept any more */
    uint64_t asked; /* position at which is_stopped() was called last */
    /* Called every 64 KiB; the sink fails with -EINTR if it returns true. May be NULL. */
    bool (*is_stopped)(void *user);
    void *user;
};

/* Return a sink that keeps nothing. */
static inline struct fs_sink fs_sink_that_counts(void)
{
    return (struct fs_sink){0};
}

/*
 * Return a sink that keeps up to `limit` bytes in `out`, which the caller frees. It fails with
 * -EFBIG at more bytes, and with -ENOMEM.
 */
static inline struct fs_sink fs_sink_that_grows(uint64_t limit)
{
    return (struct fs_sink){.limit = limit};
}

/* Return true if the sink only counts bytes. */
static inline bool fs_sink_only_counts(const struct fs_sink *sink)
{
    return !sink->out && sink->limit == 0;
}

/*
 * Record an error of the writer or of the sink, a negative errno; the first one counts. Writers of
 * long texts stop at once when `error` is set.
 */
void fs_sink_fail(struct fs_sink *sink, int error);

/* Grow the buffer and store the bytes that fit. Part of fs_sink_write(). */
void fs_sink_keep(struct fs_sink *sink, const void *bytes, size_t n);

static inline void fs_sink_write(struct fs_sink *sink, const void *bytes, size_t n)
{
    if (sink->position + n >= sink->to)
        fs_sink_keep(sink, bytes, n);
    else if (sink->out)
        memcpy(sink->out + sink->position, bytes, n);
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
