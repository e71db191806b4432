/* Arrays in memory: growable ones, a buffer of bytes, and sorted pointers to a table. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Grow the array that the pointer at `list` points to, so that `n_needed` entries of `entry_bytes`
 * bytes fit. *room is the number of entries that fit; start with NULL and 0. The room at least
 * doubles, so that n calls cost O(n). New entries are not initialized. Returns 0, or -ENOMEM with
 * the array unchanged.
 */
int gguf_reserve(void *list, size_t *room, size_t n_needed, size_t entry_bytes);

/* A growable buffer of bytes. All zeros is an empty one. */
struct gguf_buffer {
    char *bytes; /* owned; followed by a NUL; NULL if nothing was ever added */
    size_t length;
    size_t capacity;
};

/* Append bytes. Returns 0, or -ENOMEM without having added anything. */
int gguf_buffer_add(struct gguf_buffer *buffer, const void *bytes, size_t length);
int gguf_buffer_add_string(struct gguf_buffer *buffer, const char *string);

/* Remove the first `n` bytes, at most `length`. */
void gguf_buffer_drop(struct gguf_buffer *buffer, size_t n);

/* Free the bytes. The buffer is then empty and can be used again. */
void gguf_buffer_free(struct gguf_buffer *buffer);

/*
 * Return the index of the first entry whose end is above `offset`, or `count`. `ends` is the end in
 * the first of `count` entries of entry_bytes bytes; ends increase.
 */
size_t gguf_find_end(const uint64_t *ends, size_t count, size_t entry_bytes, uint64_t offset);

/*
 * Return pointers to the `count` entries of a table, sorted, or NULL if out of memory. `compare`
 * gets pointers to two of them, as from qsort(3). The caller frees the pointers.
 */
const void **gguf_sorted(const void *table, uint64_t count, size_t entry_bytes,
                         int (*compare)(const void *, const void *));
