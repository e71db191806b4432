/*
 * The merges of a byte-pair vocabulary: a hash table from pairs of tokens to the token that they
 * become. The hash has a random key, so that no file can choose pairs that collide.
 */
#pragma once

#include "gguf/support/keyed_hash.h"

struct run_merge {
    int32_t left, right; /* ids */
    uint32_t rank;       /* lower ranks merge first */
    int32_t id;          /* of the merged token; -1: the slot is free */
};

/* Open it with run_merge_table_open(). */
struct run_merge_table {
    struct run_merge *slots;
    uint32_t slot_mask; /* number of slots, a power of two, minus one */
    uint32_t n_merges;
    struct gguf_hash_key key;
};

/*
 * Make an empty table with room for about n_expected merges; it grows if there are more. Returns 0
 * or a negative errno; in both cases, free it with run_merge_table_close().
 */
int run_merge_table_open(struct run_merge_table *table, uint32_t n_expected);

void run_merge_table_close(struct run_merge_table *table);

/* Add a merge with an id of at least 0; a pair keeps its first merge. Returns 0 or -ENOMEM. */
int run_merge_table_add(struct run_merge_table *table, const struct run_merge *merge);

/* Return the merge of a pair, or NULL. Valid until another merge is added. */
const struct run_merge *run_merge_table_find(const struct run_merge_table *table, int32_t left,
                                             int32_t right);
