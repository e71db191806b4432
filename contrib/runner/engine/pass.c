#include "contrib/runner/engine/pass.h"

#include <stdlib.h>

enum { ALIGNMENT = 64, BLOCK_BYTES = 1 << 20 };

struct run_scratch_block {
    struct run_scratch_block *next;
    size_t n_bytes;
    _Alignas(ALIGNMENT) unsigned char data[];
};

static struct run_scratch_block *make_block(size_t n_bytes)
{
    const size_t whole = n_bytes > BLOCK_BYTES ? n_bytes : BLOCK_BYTES;
    struct run_scratch_block *block =
        aligned_alloc(ALIGNMENT, sizeof *block + (whole + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);

    if (block) {
        block->next = NULL;
        block->n_bytes = whole;
    }
    return block;
}

float *run_scratch_take(struct run_scratch *scratch, size_t n)
{
    size_t n_bytes;
    struct run_scratch_block **next;

    if (__builtin_mul_overflow(n, sizeof(float), &n_bytes) || n_bytes > SIZE_MAX / 2)
        return NULL;
    n_bytes = (n_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (scratch->current && scratch->current->n_bytes - scratch->used >= n_bytes) {
        scratch->used += n_bytes;
        return (float *)(void *)(scratch->current->data + scratch->used - n_bytes);
    }
    /* Blocks behind that are too small are skipped and serve when these are given back. */
    next = scratch->current ? &scratch->current->next : &scratch->first;
    if (!*next || (*next)->n_bytes < n_bytes) {
        struct run_scratch_block *block = make_block(n_bytes);

        if (!block)
            return NULL;
        block->next = *next;
        *next = block;
    }
    scratch->current = *next;
    scratch->used = n_bytes;
    return (float *)(void *)scratch->current->data;
}

struct run_scratch_mark run_scratch_mark(const struct run_scratch *scratch)
{
    return (struct run_scratch_mark){scratch->current, scratch->used};
}

void run_scratch_release(struct run_scratch *scratch, struct run_scratch_mark mark)
{
    scratch->current = mark.block;
    scratch->used = mark.used;
}

void run_scratch_free(struct run_scratch *scratch)
{
    struct run_scratch_block *block = scratch->first;

    while (block) {
        struct run_scratch_block *next = block->next;

        free(block);
        block = next;
    }
    *scratch = (struct run_scratch){0};
}
