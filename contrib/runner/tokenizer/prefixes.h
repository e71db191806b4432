/*
 * A set of texts in which those that a longer text begins with are found. They are sorted and
 * searched a byte at a time, so memory does not grow with their lengths.
 */
#ifndef GGUFS_RUNNER_PREFIXES_H
#define GGUFS_RUNNER_PREFIXES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_prefix {
    const char *text; /* not kept here */
    uint32_t length;
    int32_t id;
};

/* All zeros is an empty set. */
struct run_prefixes {
    struct run_prefix *list;
    size_t n, capacity;
    uint32_t firsts[257]; /* where those that begin with each byte begin */
};

/* Adds a text; empty ones are left out. 0 or -ENOMEM. */
int run_prefixes_add(struct run_prefixes *prefixes, const char *text, uint32_t length, int32_t id);

/* To be called when all were added. Of equal texts the one with the lowest id counts. */
void run_prefixes_sort(struct run_prefixes *prefixes);

void run_prefixes_free(struct run_prefixes *prefixes);

/* The texts that begin with what was walked so far. */
struct run_prefix_walk {
    uint32_t first, end;
    uint32_t depth;
};

void run_prefix_walk_begin(const struct run_prefixes *prefixes, struct run_prefix_walk *walk);

/* Goes on by a byte; false if no text begins so. */
bool run_prefix_walk_step(const struct run_prefixes *prefixes, struct run_prefix_walk *walk,
                          unsigned char byte);

/* The id of the text that was walked, or -1. */
int32_t run_prefix_walk_id(const struct run_prefixes *prefixes, const struct run_prefix_walk *walk);

/* The id of the longest text at the beginning of that one, and its length; or -1. */
int32_t run_prefixes_longest(const struct run_prefixes *prefixes, const char *text, size_t length,
                             size_t *n_bytes);

#endif
