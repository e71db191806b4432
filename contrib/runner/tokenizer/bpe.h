/*
 * Byte-pair encoding: repeatedly merges the pair of neighbouring symbols with the lowest rank;
 * among equal ranks, the leftmost one.
 */
#pragma once

#include "gguf/support/keyed_hash.h"

struct run_tokenizer;

struct run_merge {
    int32_t left, right; /* ids */
    uint32_t rank;       /* lower ranks merge first */
    int32_t id;          /* of the merged token; -1: the slot is free */
};

/*
 * The merges of a vocabulary: a hash table from pairs of tokens to the token that they become. The
 * hash has a random key, so that no file can choose pairs that collide. All zeros: there is no
 * table.
 */
struct run_merge_table {
    struct run_merge *slots; /* owned: free them */
    uint32_t slot_mask;      /* number of slots, a power of two, minus one */
    struct gguf_hash_key key;
};

/* Make an empty table with room for `n` merges, at most 2^22. Returns 0 or a negative errno. */
int run_merge_table_open(struct run_merge_table *table, uint32_t n);

/* Add a merge with an id of at least 0; a pair keeps its first merge. */
void run_merge_table_add(struct run_merge_table *table, const struct run_merge *merge);

/* Return the merge of a pair, or NULL. */
const struct run_merge *run_merge_table_find(const struct run_merge_table *table, int32_t left,
                                             int32_t right);

struct run_symbol {
    uint32_t start, length; /* in bytes of the text; length 0: merged into another symbol */
    int32_t previous, next; /* -1: none */
    int32_t id;             /* of the token, or -1 */
};

struct run_pair {
    uint64_t order;  /* its rank, then the index of the first symbol */
    uint32_t length; /* of both symbols together, to detect outdated pairs */
    int32_t id;      /* of the merged token */
};

/* Reusable working memory; all zeros is an empty merger. */
struct run_merger {
    struct run_symbol *symbols;
    size_t n_symbols, symbol_capacity;
    struct run_pair *pairs; /* a heap */
    size_t n_pairs, pair_capacity;
};

/* Start a text without symbols, which may get up to `most` of them. Returns 0 or -ENOMEM. */
int run_merger_begin(struct run_merger *merger, size_t most);

/* Append a symbol. The text must be shorter than 2 GiB. */
void run_merger_add(struct run_merger *merger, size_t start, size_t length, int32_t id);

/*
 * Merge by the tokenizer's merges or, without a table, whenever two symbols together are a token.
 * The symbols are then those reached from symbol 0 along `next`.
 */
void run_merger_merge(struct run_merger *merger, const struct run_tokenizer *tokenizer,
                      const char *text);

void run_merger_free(struct run_merger *merger);
