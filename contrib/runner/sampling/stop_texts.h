/*
 * Texts that end a generation. Bytes pass through; those that may be the beginning of such a text
 * are held back until it is clear that they are not.
 */
#ifndef GGUFS_RUNNER_STOP_TEXTS_H
#define GGUFS_RUNNER_STOP_TEXTS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Looks into the `length` bytes that were not passed on yet. `*n_free` is how many of the first of
 * them can be: up to the earliest text that is found, which makes the result true, or up to what
 * may become one. Empty texts are never found.
 */
bool run_stop_texts_find(const char *const *texts, size_t n_texts, const char *bytes, size_t length,
                         size_t *n_free);

#endif
