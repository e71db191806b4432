/*
 * Texts that end a generation. Bytes that may begin one of the texts are held back until the next
 * bytes decide; all other bytes pass through.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Search the `length` bytes that were not passed on yet. Returns true if a text was found. Stores
 * in `*n_free` the number of first bytes that can be passed on: up to the earliest text found, or
 * else up to a possible beginning of one. Empty texts are never found.
 */
bool run_stop_texts_find(const char *const *texts, size_t n_texts, const char *bytes, size_t length,
                         size_t *n_free);
