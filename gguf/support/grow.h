/* Growable arrays. */
#ifndef GGUFS_GGUF_GROW_H
#define GGUFS_GGUF_GROW_H

#include <stddef.h>

/*
 * Return `list`, or a larger copy of it in its place, with room for at least `n_needed` entries of
 * `entry_bytes` bytes. *room is the number of entries that fit; start with NULL and 0. The room at
 * least doubles, so that n calls cost O(n). New entries are not initialized. Returns NULL if out of
 * memory; `list` is then still valid and still the caller's.
 */
void *gguf_grow(void *list, size_t *room, size_t n_needed, size_t entry_bytes);

#endif
