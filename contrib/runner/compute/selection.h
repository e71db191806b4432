/*
 * Sparse attention: which of the tokens before it a token attends to, by the scores of an indexer.
 */
#ifndef GGUFS_RUNNER_SELECTION_H
#define GGUFS_RUNNER_SELECTION_H

#include <stddef.h>
#include <stdint.h>

/* Token i of a batch, in group g of heads: counts[i · n_groups + g] positions, ascending, from
 * positions[(i · n_groups + g) · stride] on. */
struct run_selection {
    uint32_t n_groups; /* neighbouring heads share a group; divides their number */
    size_t stride;
    uint32_t *positions;
    uint32_t *counts;
    size_t capacity; /* allocated lists, and elements of all of them */
    size_t capacity_positions;
};

/* Makes room for n tokens with up to `stride` positions in each group; contents are lost. Returns 0
 * or -ENOMEM. */
int run_selection_reserve(struct run_selection *selection, size_t n, uint32_t n_groups,
                          size_t stride);
void run_selection_free(struct run_selection *selection);

/* How scores choose. */
struct run_index {
    uint32_t n_heads, width;        /* of the indexer's queries; it has one key for each token */
    uint32_t n_best;                /* positions, or blocks, that are chosen */
    uint32_t block, n_local_blocks; /* block 0: positions. Else a position scores for its block, and
                                       the last blocks are chosen in any case */
    const float *keys;              /* [first + n][width] */
};

/*
 * For token i of n, at position first + i: chooses among positions 0 to its own. queries are
 * [n][n_heads][width]. Without blocks a position's score is the sum over heads of weights[i][head]
 * · max(query · key, 0), and all heads are one group; with blocks that of a block is the highest
 * query · key, each head is a group, and weights are not used. Equal scores choose the earlier
 * position. Works in parallel. Returns 0 or -ENOMEM.
 */
int run_select(const struct run_index *index, const float *queries, const float *weights, size_t n,
               size_t first, struct run_selection *selection);

#endif
