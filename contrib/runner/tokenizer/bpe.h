/*
 * Byte-pair encoding: repeatedly merges the pair of neighbouring symbols with the lowest rank;
 * among equal ranks, the leftmost one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* Return true if the two symbols can merge, and store the rank and the token. */
typedef bool run_find_pair(const void *context, const char *text, const struct run_symbol *left,
                           const struct run_symbol *right, uint32_t *rank, int32_t *id);

/* Start a text without symbols. */
void run_merger_begin(struct run_merger *merger);

/* Append a symbol. The text must be shorter than 2 GiB. Returns 0 or -ENOMEM. */
int run_merger_add(struct run_merger *merger, size_t start, size_t length, int32_t id);

/* Merge. The symbols are then those reached from symbol 0 along `next`. Returns 0 or -ENOMEM. */
int run_merger_merge(struct run_merger *merger, const char *text, run_find_pair *find,
                     const void *context);

void run_merger_free(struct run_merger *merger);
