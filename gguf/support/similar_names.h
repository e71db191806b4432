/* Finds the name that the user may have meant. */
#ifndef GGUFS_GGUF_SIMILAR_NAMES_H
#define GGUFS_GGUF_SIMILAR_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* Longer names are similar to none. */
#define GGUF_LONGEST_NAME 32

/*
 * Return true if `name` resembles `word`, at least as closely as the names tried before, and store
 * its distance + 1 in `*least`, which starts at 0. A name resembles a word if fewer than about a
 * third of the letters were changed, added, removed or swapped with the next. Of two names at the
 * same distance, one that begins with the word is closer.
 */
bool gguf_is_closer(const char *word, const char *name, size_t *least);

#endif
