#include "contrib/runner/tokenizer/merge_table.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_SLOTS 512u

static struct run_merge *make_slots(uint32_t n)
{
    struct run_merge *slots = malloc(n * sizeof *slots);

    for (uint32_t i = 0; slots && i < n; i++)
        slots[i].id = -1;
    return slots;
}

int run_merge_table_open(struct run_merge_table *table, uint32_t n_expected)
{
    uint32_t n_slots = FIRST_SLOTS;

    while (n_slots < UINT32_MAX / 2 && n_slots / 2 < n_expected)
        n_slots *= 2;
    *table = (struct run_merge_table){.slots = make_slots(n_slots), .slot_mask = n_slots - 1};
    return table->slots ? gguf_hash_key_make(&table->key) : -ENOMEM;
}

void run_merge_table_close(struct run_merge_table *table)
{
    free(table->slots);
    *table = (struct run_merge_table){0};
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

static int grow(struct run_merge_table *table)
{
    struct run_merge *old = table->slots;
    const uint32_t n_old = table->slot_mask + 1;

    if (n_old > UINT32_MAX / 2)
        return -ENOMEM;
    table->slots = make_slots(2 * n_old);
    if (!table->slots) {
        table->slots = old;
        return -ENOMEM;
    }
    table->slot_mask = 2 * n_old - 1;
    for (uint32_t i = 0; i < n_old; i++)
        if (old[i].id >= 0)
            *find_slot(table, old[i].left, old[i].right) = old[i];
    free(old);
    return 0;
}

int run_merge_table_add(struct run_merge_table *table, const struct run_merge *merge)
{
    struct run_merge *slot;

    if (table->n_merges > table->slot_mask / 2 && grow(table) < 0)
        return -ENOMEM;
    slot = find_slot(table, merge->left, merge->right);
    if (slot->id < 0) {
        *slot = *merge;
        table->n_merges++;
    }
    return 0;
}

const struct run_merge *run_merge_table_find(const struct run_merge_table *table, int32_t left,
                                             int32_t right)
{
    const struct run_merge *slot = find_slot(table, left, right);

    return slot->id >= 0 ? slot : NULL;
}
