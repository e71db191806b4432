#include "contrib/runner/compute/top_k.h"

#include "contrib/runner/compute/thread_pool.h"
#include "dequant/kernels.h"
#include "gguf/support/arrays.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Make room for n tokens with up to `stride` positions in each group; contents are lost. */
static int reserve(struct run_selection *selection, size_t n, uint32_t n_groups, size_t stride)
{
    size_t n_lists, n_positions;

    if (__builtin_mul_overflow(n, n_groups, &n_lists) ||
        __builtin_mul_overflow(n_lists, stride, &n_positions))
        return -ENOMEM;
    selection->n_groups = n_groups;
    selection->stride = stride;
    if (gguf_reserve(&selection->counts, &selection->capacity, n_lists, sizeof(uint32_t)) < 0)
        return -ENOMEM;
    return gguf_reserve(&selection->positions, &selection->capacity_positions, n_positions,
                        sizeof(uint32_t));
}

void run_selection_free(struct run_selection *selection)
{
    free(selection->positions);
    free(selection->counts);
    *selection = (struct run_selection){0};
}

/* A position or a block. */
struct candidate {
    float score;
    uint32_t number;
};

static int compare_scores(const void *a, const void *b)
{
    const struct candidate *left = a, *right = b;

    if (left->score != right->score)
        return left->score > right->score ? -1 : 1;
    return left->number < right->number ? -1 : left->number > right->number;
}

static int compare_numbers(const void *a, const void *b)
{
    const struct candidate *left = a, *right = b;

    return left->number < right->number ? -1 : left->number > right->number;
}

/* Move the best n_best candidates to the front, sorted by number. Returns their count. */
static size_t keep_best(struct candidate *candidates, size_t n, size_t n_best)
{
    if (n <= n_best)
        return n;
    for (size_t i = 0; i < n; i++)
        if (isnan(candidates[i].score))
            candidates[i].score = -INFINITY;
    qsort(candidates, n, sizeof *candidates, compare_scores);
    qsort(candidates, n_best, sizeof *candidates, compare_numbers);
    return n_best;
}

/* Compute the products of a query and the keys of n positions. */
static void score(const struct run_index *index, const float *query, size_t n, float *products)
{
    memset(products, 0, n * sizeof *products);
    dequant_dot(index->keys, index->width, n, query, 0, 1, index->width, products, 0);
}

static uint32_t select_positions(const struct run_index *index, const float *queries,
                                 const float *weights, size_t n, float *products,
                                 struct candidate *candidates, uint32_t *positions)
{
    size_t n_chosen;

    for (size_t i = 0; i < n; i++)
        candidates[i] = (struct candidate){0, (uint32_t)i};
    for (size_t head = 0; n > index->n_best && head < index->n_heads; head++) {
        score(index, queries + head * index->width, n, products);
        for (size_t i = 0; i < n; i++)
            candidates[i].score += weights[head] * fmaxf(products[i], 0);
    }
    n_chosen = keep_best(candidates, n, index->n_best);
    for (size_t i = 0; i < n_chosen; i++)
        positions[i] = candidates[i].number;
    return (uint32_t)n_chosen;
}

static uint32_t select_blocks(const struct run_index *index, const float *query, size_t n,
                              float *products, struct candidate *candidates, uint32_t *positions)
{
    const size_t block = index->block, n_blocks = (n + block - 1) / block;
    uint32_t count = 0;
    size_t n_chosen;

    score(index, query, n_blocks > index->n_best ? n : 0, products);
    for (size_t b = 0; b < n_blocks; b++) {
        float highest = b + index->n_local_blocks >= n_blocks ? INFINITY : -INFINITY;

        for (size_t i = b * block; n_blocks > index->n_best && i < n && i < (b + 1) * block; i++)
            highest = fmaxf(highest, products[i]);
        candidates[b] = (struct candidate){highest, (uint32_t)b};
    }
    n_chosen = keep_best(candidates, n_blocks, index->n_best);
    for (size_t c = 0; c < n_chosen; c++)
        for (size_t i = candidates[c].number * block;
             i < n && i < (candidates[c].number + 1) * block; i++)
            positions[count++] = (uint32_t)i;
    return count;
}

/* The arguments of run_select(), and memory of each thread for the positions of a token. */
struct call {
    const struct run_index *index;
    const float *queries, *weights;
    size_t first, n_all;          /* the position of the first token, and the number of positions */
    float *products;              /* [threads][n_all] */
    struct candidate *candidates; /* the same */
    struct run_selection *selection;
};

/* Fill in a list of the selection. */
static void select_list(void *context, size_t list)
{
    const struct call *call = context;
    const struct run_index *index = call->index;
    const struct run_selection *selection = call->selection;
    const unsigned thread = run_thread_number();
    float *products = call->products + thread * call->n_all;
    struct candidate *candidates = call->candidates + thread * call->n_all;
    const size_t token = list / selection->n_groups, group = list % selection->n_groups;
    const size_t n_visible = call->first + token + 1;
    const float *queries = call->queries + token * index->n_heads * index->width;
    uint32_t *positions = selection->positions + list * selection->stride;

    selection->counts[list] =
        index->block > 0 ? select_blocks(index, queries + group * index->width, n_visible, products,
                                         candidates, positions)
                         : select_positions(index, queries, call->weights + token * index->n_heads,
                                            n_visible, products, candidates, positions);
}

int run_select(const struct run_index *index, const float *queries, const float *weights, size_t n,
               size_t first, struct run_selection *selection)
{
    const uint32_t n_groups = index->block > 0 ? index->n_heads : 1;
    const size_t most = (size_t)index->n_best * (index->block > 0 ? index->block : 1);
    const size_t n_all = first + n, n_places = run_thread_pool_size() * n_all;
    struct call call = {index, queries, weights, first, n_all, .selection = selection};
    int code = reserve(selection, n, n_groups, most < n_all ? most : n_all);

    if (code < 0)
        return code;
    call.products = malloc(n_places * sizeof *call.products);
    call.candidates = malloc(n_places * sizeof *call.candidates);
    if (call.products && call.candidates)
        run_parallel_for_each(n * n_groups, 1, select_list, &call);
    else
        code = -ENOMEM;
    free(call.products);
    free(call.candidates);
    return code;
}
