/*
 * A growing list of tokens.
 */
#ifndef GGUFS_RUNNER_TOKEN_IDS_H
#define GGUFS_RUNNER_TOKEN_IDS_H

#include <stddef.h>
#include <stdint.h>

/* All zeros is an empty one. */
struct run_ids {
    int32_t *list;
    size_t n, capacity;
};

/* 0 or -ENOMEM. */
int run_ids_add(struct run_ids *ids, int32_t id);

/* Frees the list and makes it an empty one. */
void run_ids_free(struct run_ids *ids);

/*
 * Makes room for `n` elements of `element_bytes` at `list`, whose capacity is counted in elements.
 * 0 or -ENOMEM, then the list is as it was.
 */
int run_reserve(void *list, size_t *capacity, size_t n, size_t element_bytes);

#endif
