/* Sparse attention: an indexer's scores select the tokens that each token attends to. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * The selected positions. Token i of a batch has, for group g of heads, counts[i · n_groups + g]
 * positions, ascending, from positions[(i · n_groups + g) · stride] on.
 */
struct run_selection {
    uint32_t n_groups; /* of adjacent heads; divides the number of heads */
    size_t stride;
    uint32_t *positions;
    uint32_t *counts;
    size_t capacity; /* allocated lists, and elements of all of them */
    size_t capacity_positions;
};

void run_selection_free(struct run_selection *selection);

/* The rules of a selection. */
struct run_index {
    uint32_t n_heads, width;        /* of the indexer's queries; there is one key for each token */
    uint32_t n_best;                /* positions, or blocks, to select */
    uint32_t block, n_local_blocks; /* block 0: select positions. Else select blocks of this many
                                       positions; the last n_local_blocks are always selected */
    const float *keys;              /* [first + n][width] */
};

/*
 * Select positions for n tokens: for token i, at position first + i, among 0 to first + i. queries
 * are [n][n_heads][width]. Without blocks, a position's score is the sum over heads of
 * weights[i][head] · max(query · key, 0), and all heads are one group. With blocks, a block's score
 * is its largest query · key, each head is a group, and weights are not used. If scores are equal,
 * the earlier position wins. Works in parallel. Returns 0 or -ENOMEM.
 */
int run_select(const struct run_index *index, const float *queries, const float *weights, size_t n,
               size_t first, struct run_selection *selection);
