/* Joins characters that are split between pieces of text, for output. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define RUN_UTF8_BYTES 4 /* of the longest character */

/* All zeros is a stream that has not begun. */
struct run_utf8_stream {
    char kept[RUN_UTF8_BYTES]; /* the beginning of an incomplete character */
    size_t n_kept;
    bool is_at_start; /* nothing of the text has been shown yet */
    char *out;
    size_t capacity;
};

/*
 * Start over. `is_at_start` is true if a text begins here; false if it continues one that the
 * reader has seen, for instance a prompt.
 */
void run_utf8_begin(struct run_utf8_stream *stream, bool is_at_start);

/*
 * Add a piece and return the characters that are complete. Invalid bytes become U+FFFD, one for the
 * longest part that could begin a character, as Unicode recommends. `*out` does not end with a NUL
 * and is valid until the next call. Returns 0 or -ENOMEM.
 */
int run_utf8_put(struct run_utf8_stream *stream, const char *piece, size_t length, const char **out,
                 size_t *out_length);

/* End the text: an incomplete character becomes U+FFFD. */
int run_utf8_end(struct run_utf8_stream *stream, const char **out, size_t *out_length);

void run_utf8_free(struct run_utf8_stream *stream);
