/*
 * A set of texts that finds all its members that are prefixes of a given text. The members are
 * sorted, and each has a link to its longest prefix in the set: a trie whose nodes are the members,
 * so that its memory does not grow with their lengths.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct run_prefix {
    const char *text; /* owned by the caller */
    uint32_t length;
    int32_t id;
    uint32_t parent; /* 1 + index of the longest other text that is a prefix of this one; 0: none */
    uint32_t jump;   /* 1 + index of a shorter prefix: any of n prefixes is reached in O(log n) */
    uint32_t depth;  /* number of other texts that are prefixes of this one */
};

/* All zeros is an empty set. */
struct run_prefix_trie {
    struct run_prefix *list;
    size_t n, capacity;
    uint32_t firsts[257]; /* for each byte: index of the first text that begins with it */
};

/* Add a text; empty ones are ignored. Returns 0 or -ENOMEM. */
int run_prefix_trie_add(struct run_prefix_trie *trie, const char *text, uint32_t length,
                        int32_t id);

/*
 * Sort the set and link it. Call it once, after all texts were added. Of equal texts, the one with
 * the lowest id stays.
 */
void run_prefix_trie_sort(struct run_prefix_trie *trie);

void run_prefix_trie_free(struct run_prefix_trie *trie);

/*
 * Find the longest text that is a prefix of `text`, or return NULL. Adds the number of texts
 * visited, O(log n), to *n_steps unless it is NULL.
 */
const struct run_prefix *run_prefix_trie_longest(const struct run_prefix_trie *trie,
                                                 const char *text, size_t length, size_t *n_steps);

/* Return the next shorter text that is a prefix of the same text, or NULL. */
static inline const struct run_prefix *run_prefix_trie_shorter(const struct run_prefix_trie *trie,
                                                               const struct run_prefix *prefix)
{
    return prefix->parent > 0 ? &trie->list[prefix->parent - 1] : NULL;
}
