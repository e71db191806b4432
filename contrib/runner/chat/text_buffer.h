/*
 * Bytes that grow.
 */
#ifndef GGUFS_RUNNER_TEXT_BUFFER_H
#define GGUFS_RUNNER_TEXT_BUFFER_H

#include <stddef.h>

struct run_buffer {
    char *bytes; /* owned; a NUL is behind them; NULL if nothing was ever added */
    size_t length;
    size_t capacity;
};

/* Returns 0 or -ENOMEM; then nothing was added. */
int run_buffer_add(struct run_buffer *text, const void *bytes, size_t length);
int run_buffer_add_string(struct run_buffer *text, const char *string);

/* Removes the first `n` bytes. */
void run_buffer_drop(struct run_buffer *text, size_t n);

/* Leaves it empty, and usable again. */
void run_buffer_free(struct run_buffer *text);

#endif
