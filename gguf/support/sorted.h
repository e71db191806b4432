/* Sorting a table by pointers, which leaves its entries where they are. */
#ifndef GGUFS_GGUF_SORTED_H
#define GGUFS_GGUF_SORTED_H

#include <stddef.h>
#include <stdint.h>

/*
 * Return pointers to the `count` entries of a table, sorted, or NULL if out of memory. `compare`
 * gets pointers to two of them, as from qsort(3). The caller frees the pointers.
 */
const void **gguf_sorted(const void *table, uint64_t count, size_t entry_bytes,
                         int (*compare)(const void *, const void *));

#endif
