/*
 * Byte-pair encoding: of the symbols of a text, the pair of neighbours with the lowest rank becomes
 * one, again and again; of equal ranks the one that stands first.
 */
#ifndef GGUFS_RUNNER_SYMBOL_MERGING_H
#define GGUFS_RUNNER_SYMBOL_MERGING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_symbol {
    uint32_t start, length; /* bytes of the text; a length of 0: it is part of another one */
    int32_t previous, next; /* -1: there is none */
    int32_t id;             /* of the token, or -1 */
};

struct run_pair {
    uint64_t order;  /* its rank, and below that the index of the first symbol */
    uint32_t length; /* of both together, to tell whether they have changed */
    int32_t id;      /* of the token they become */
};

/* Working memory that is used again; all zeros is an empty one. */
struct run_merger {
    struct run_symbol *symbols;
    size_t n_symbols, symbol_capacity;
    struct run_pair *pairs; /* a heap */
    size_t n_pairs, pair_capacity;
};

/* Whether the two symbols of `text` become one: its rank and token. */
typedef bool run_find_pair(const void *context, const char *text, const struct run_symbol *left,
                           const struct run_symbol *right, uint32_t *rank, int32_t *id);

/* Begins a text without symbols. */
void run_merger_begin(struct run_merger *merger);

/* Adds the symbol behind the last; the text is shorter than 2 GiB. 0 or -ENOMEM. */
int run_merger_add(struct run_merger *merger, size_t start, size_t length, int32_t id);

/* Merges. What is left are the symbols from 0 along `next`. 0 or -ENOMEM. */
int run_merger_merge(struct run_merger *merger, const char *text, run_find_pair *find,
                     const void *context);

void run_merger_free(struct run_merger *merger);

#endif
