/* A growing list of token ids. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zeros is an empty list. */
struct run_ids {
    int32_t *list;
    size_t n, capacity;
    bool is_short; /* of memory: an id could not be appended, and no later one is */
};

/* Append an id. Returns 0 or -ENOMEM. A loop may look at `is_short` once instead. */
int run_ids_add(struct run_ids *ids, int32_t id);

/* Free the list and make it empty. */
void run_ids_free(struct run_ids *ids);
