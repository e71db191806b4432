#include "contrib/runner/tokenizer/bpe.h"

#include "contrib/runner/tokenizer/token_ids.h"

#include <stdlib.h>

void run_merger_begin(struct run_merger *merger)
{
    merger->n_symbols = 0;
    merger->n_pairs = 0;
}

void run_merger_free(struct run_merger *merger)
{
    free(merger->symbols);
    free(merger->pairs);
    *merger = (struct run_merger){0};
}

int run_merger_add(struct run_merger *merger, size_t start, size_t length, int32_t id)
{
    const size_t n = merger->n_symbols;
    const int code =
        run_reserve(&merger->symbols, &merger->symbol_capacity, n + 1, sizeof *merger->symbols);

    if (code < 0)
        return code;
    if (n > 0)
        merger->symbols[n - 1].next = (int32_t)n;
    merger->symbols[n] =
        (struct run_symbol){(uint32_t)start, (uint32_t)length, (int32_t)n - 1, -1, id};
    merger->n_symbols = n + 1;
    return 0;
}

static int push_pair(struct run_merger *merger, struct run_pair pair)
{
    size_t at = merger->n_pairs;
    const int code =
        run_reserve(&merger->pairs, &merger->pair_capacity, at + 1, sizeof *merger->pairs);

    if (code < 0)
        return code;
    merger->n_pairs++;
    while (at > 0 && merger->pairs[(at - 1) / 2].order > pair.order) {
        merger->pairs[at] = merger->pairs[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    merger->pairs[at] = pair;
    return 0;
}

static struct run_pair pop_pair(struct run_merger *merger)
{
    const struct run_pair first = merger->pairs[0];
    const struct run_pair moved = merger->pairs[--merger->n_pairs];
    const size_t n = merger->n_pairs;
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;

        if (child + 1 < n && merger->pairs[child + 1].order < merger->pairs[child].order)
            child++;
        if (child >= n || merger->pairs[child].order >= moved.order)
            break;
        merger->pairs[at] = merger->pairs[child];
        at = child;
    }
    merger->pairs[at] = moved;
    return first;
}

/* Put the pair that begins with symbol `left` into the heap, if it can merge. */
static int try_pair(struct run_merger *merger, const char *text, int32_t left, run_find_pair *find,
                    const void *context)
{
    const struct run_symbol *symbols = merger->symbols;
    const struct run_symbol *right;
    uint32_t rank;
    int32_t id;

    if (left < 0 || symbols[left].next < 0)
        return 0;
    right = &symbols[symbols[left].next];
    if (!find(context, text, &symbols[left], right, &rank, &id))
        return 0;
    return push_pair(merger, (struct run_pair){(uint64_t)rank << 32 | (uint32_t)left,
                                               symbols[left].length + right->length, id});
}

int run_merger_merge(struct run_merger *merger, const char *text, run_find_pair *find,
                     const void *context)
{
    int code = 0;

    for (size_t i = 0; code == 0 && i + 1 < merger->n_symbols; i++)
        code = try_pair(merger, text, (int32_t)i, find, context);
    while (code == 0 && merger->n_pairs > 0) {
        const struct run_pair pair = pop_pair(merger);
        const int32_t at = (int32_t)(pair.order & UINT32_MAX);
        struct run_symbol *left = &merger->symbols[at], *right;

        if (left->length == 0 || left->next < 0)
            continue;
        right = &merger->symbols[left->next];
        /* The pair is outdated. Symbols only grow, so an equal length means an equal pair. */
        if (left->length + right->length != pair.length)
            continue;
        left->length = pair.length;
        left->id = pair.id;
        left->next = right->next;
        right->length = 0;
        if (left->next >= 0)
            merger->symbols[left->next].previous = at;
        code = try_pair(merger, text, left->previous, find, context);
        if (code == 0)
            code = try_pair(merger, text, at, find, context);
    }
    return code;
}
