/*
 * A set of texts that finds those which are prefixes of a longer text. They are sorted and searched
 * byte by byte, so memory does not grow with their lengths.
 */
#ifndef GGUFS_RUNNER_PREFIXES_H
#define GGUFS_RUNNER_PREFIXES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_prefix {
    const char *text; /* owned by the caller */
    uint32_t length;
    int32_t id;
};

/* All zeros is an empty set. */
struct run_prefixes {
    struct run_prefix *list;
    size_t n, capacity;
    uint32_t firsts[257]; /* for each byte: index of the first text that begins with it */
};

/* Add a text; empty ones are ignored. Returns 0 or -ENOMEM. */
int run_prefixes_add(struct run_prefixes *prefixes, const char *text, uint32_t length, int32_t id);

/*
 * Sort the set. Call it once, after all texts were added. If texts are equal, the one with the
 * lowest id stays.
 */
void run_prefixes_sort(struct run_prefixes *prefixes);

void run_prefixes_free(struct run_prefixes *prefixes);

/* The texts that begin with the bytes walked so far. */
struct run_prefix_walk {
    uint32_t first, end;
    uint32_t depth;
};

void run_prefix_walk_begin(const struct run_prefixes *prefixes, struct run_prefix_walk *walk);

/* Walk one byte further. Returns false if no text begins with these bytes. */
bool run_prefix_walk_step(const struct run_prefixes *prefixes, struct run_prefix_walk *walk,
                          unsigned char byte);

/* Return the id of the text that equals the bytes walked, or -1. */
int32_t run_prefix_walk_id(const struct run_prefixes *prefixes, const struct run_prefix_walk *walk);

/*
 * Find the longest text that is a prefix of `text`. Returns its id and stores its length, or
 * returns -1.
 */
int32_t run_prefixes_longest(const struct run_prefixes *prefixes, const char *text, size_t length,
                             size_t *n_bytes);

#endif
