/*
 * Text that comes in pieces which need not be whole characters, for a terminal that wants such.
 */
#ifndef GGUFS_RUNNER_UTF8_STREAM_H
#define GGUFS_RUNNER_UTF8_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#define RUN_UTF8_BYTES 4 /* of the longest character */

/* All zeros is one that has not begun. */
struct run_utf8_stream {
    char kept[RUN_UTF8_BYTES]; /* the beginning of a character */
    size_t n_kept;
    bool is_at_start; /* of a text: nothing was shown yet */
    char *out;
    size_t capacity;
};

/* Forgets what was kept. `is_at_start`: a text begins here; otherwise it goes on, as behind a
 * prompt that the reader has seen. */
void run_utf8_begin(struct run_utf8_stream *stream, bool is_at_start);

/*
 * Takes a piece and gives out the characters that are complete. What cannot become one is U+FFFD,
 * once for the longest part of it that could begin a character, as Unicode recommends. `*out` is
 * without a NUL at its end and stays until the next call. 0 or -ENOMEM.
 */
int run_utf8_put(struct run_utf8_stream *stream, const char *piece, size_t length, const char **out,
                 size_t *out_length);

/* The text is over: a character that is not complete is U+FFFD. */
int run_utf8_end(struct run_utf8_stream *stream, const char **out, size_t *out_length);

void run_utf8_free(struct run_utf8_stream *stream);

#endif
