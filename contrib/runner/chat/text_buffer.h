/*
 * Bytes that grow.
 */
#ifndef GGUFS_RUNNER_TEXT_BUFFER_H
#define GGUFS_RUNNER_TEXT_BUFFER_H

#include <stddef.h>

struct run_text {
    char *bytes; /* owned; a NUL is behind them; NULL if nothing was ever added */
    size_t length;
    size_t capacity;
};

/* Returns 0 or -ENOMEM; then nothing was added. */
int run_text_add(struct run_text *text, const void *bytes, size_t length);
int run_text_add_string(struct run_text *text, const char *string);

/* Removes the first `n` bytes. */
void run_text_drop(struct run_text *text, size_t n);

/* Leaves it empty, and usable again. */
void run_text_free(struct run_text *text);

#endif
