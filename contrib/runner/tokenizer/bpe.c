#include "contrib/runner/tokenizer/bpe.h"

#include "contrib/runner/tokenizer/tokenizer_kinds.h"

#include <errno.h>
#include <stdlib.h>

/* ---- the table of merges ---- */

int run_merge_table_open(struct run_merge_table *table, uint32_t n)
{
    uint32_t n_slots = 512;

    while (n_slots / 2 < n)
        n_slots *= 2;
    *table = (struct run_merge_table){.slots = malloc(n_slots * sizeof *table->slots),
                                      .slot_mask = n_slots - 1};
    if (!table->slots)
        return -ENOMEM;
    for (uint32_t i = 0; i < n_slots; i++)
        table->slots[i].id = -1;
    return gguf_hash_key_make(&table->key);
}

/* Return the slot of a pair, or the free one where it belongs. */
static struct run_merge *find_slot(const struct run_merge_table *table, int32_t left, int32_t right)
{
    uint32_t at = gguf_hash_pair(&table->key, (uint32_t)left, (uint32_t)right) & table->slot_mask;

    while (table->slots[at].id >= 0 &&
           (table->slots[at].left != left || table->slots[at].right != right))
        at = (at + 1) & table->slot_mask;
    return &table->slots[at];
}

void run_merge_table_add(struct run_merge_table *table, const struct run_merge *merge)
{
    struct run_merge *slot = find_slot(table, merge->left, merge->right);

    if (slot->id < 0)
        *slot = *merge;
}

const struct run_merge *run_merge_table_find(const struct run_merge_table *table, int32_t left,
                                             int32_t right)
{
    const struct run_merge *slot = find_slot(table, left, right);

    return slot->id >= 0 ? slot : NULL;
}

/* ---- merging ---- */

int run_merger_begin(struct run_merger *merger, size_t most)
{
    merger->n_symbols = 0;
    merger->n_pairs = 0;
    /* Each symbol but the last begins a pair, and each merge replaces one pair by two. */
    if (gguf_reserve(&merger->symbols, &merger->symbol_capacity, most, sizeof *merger->symbols) < 0)
        return -ENOMEM;
    return gguf_reserve(&merger->pairs, &merger->pair_capacity, 2 * most, sizeof *merger->pairs);
}

void run_merger_free(struct run_merger *merger)
{
    free(merger->symbols);
    free(merger->pairs);
}

void run_merger_add(struct run_merger *merger, size_t start, size_t length, int32_t id)
{
    const size_t n = merger->n_symbols++;

    if (n > 0)
        merger->symbols[n - 1].next = (int32_t)n;
    merger->symbols[n] =
        (struct run_symbol){(uint32_t)start, (uint32_t)length, (int32_t)n - 1, -1, id};
}

static void push_pair(struct run_merger *merger, struct run_pair pair)
{
    size_t at = merger->n_pairs++;

    while (at > 0 && merger->pairs[(at - 1) / 2].order > pair.order) {
        merger->pairs[at] = merger->pairs[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    merger->pairs[at] = pair;
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

/* Find the rank and the token of two symbols. Returns false if they do not merge. */
static bool find_pair(const struct run_tokenizer *tokenizer, const char *text,
                      const struct run_symbol *left, const struct run_symbol *right, uint32_t *rank,
                      int32_t *id)
{
    if (tokenizer->merges.slots) {
        const struct run_merge *merge =
            left->id < 0 || right->id < 0
                ? NULL
                : run_merge_table_find(&tokenizer->merges, left->id, right->id);

        if (!merge)
            return false;
        *rank = merge->rank;
        *id = merge->id;
        return true;
    }
    *id = run_vocabulary_find_text(&tokenizer->vocabulary, text + left->start,
                                   (size_t)left->length + right->length);
    if (*id < 0)
        return false;
    *rank = tokenizer->ranks ? tokenizer->ranks[*id] : (uint32_t)*id;
    return true;
}

/* Put the pair that begins with symbol `left` into the heap, if it can merge. */
static void try_pair(struct run_merger *merger, const struct run_tokenizer *tokenizer,
                     const char *text, int32_t left)
{
    const struct run_symbol *symbols = merger->symbols;
    const struct run_symbol *right;
    uint32_t rank;
    int32_t id;

    if (left < 0 || symbols[left].next < 0)
        return;
    right = &symbols[symbols[left].next];
    if (find_pair(tokenizer, text, &symbols[left], right, &rank, &id))
        push_pair(merger, (struct run_pair){(uint64_t)rank << 32 | (uint32_t)left,
                                            symbols[left].length + right->length, id});
}

void run_merger_merge(struct run_merger *merger, const struct run_tokenizer *tokenizer,
                      const char *text)
{
    for (size_t i = 0; i + 1 < merger->n_symbols; i++)
        try_pair(merger, tokenizer, text, (int32_t)i);
    while (merger->n_pairs > 0) {
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
        try_pair(merger, tokenizer, text, left->previous);
        try_pair(merger, tokenizer, text, at);
    }
}
