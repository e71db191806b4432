/*
 * Texts that end a generation. Bytes pass through, except those that may begin such a text: they
 * are held back until it is clear that they do not.
 */
#ifndef GGUFS_RUNNER_STOP_TEXTS_H
#define GGUFS_RUNNER_STOP_TEXTS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Search the `length` bytes that were not passed on yet. Returns true if a text was found. Stores
 * in `*n_free` how many of the first bytes can be passed on: those before the earliest text found,
 * or else those before what may become one. Empty texts are never found.
 */
bool run_stop_texts_find(const char *const *texts, size_t n_texts, const char *bytes, size_t length,
                         size_t *n_free);

#endif
