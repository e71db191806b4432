#include "contrib/runner/engine/pass.h"

#include <stdlib.h>
#include <sys/mman.h>

/* For AddressSanitizer, a gap follows each piece, and released memory is poisoned. */
#if defined(__SANITIZE_ADDRESS__)
#define IS_WATCHED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_WATCHED 1
#endif
#endif
#ifdef IS_WATCHED
#include <sanitizer/asan_interface.h>
enum { GAP_BYTES = 64 };
#else
#define ASAN_POISON_MEMORY_REGION(at, n_bytes)   ((void)(at), (void)(n_bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, n_bytes) ((void)(at), (void)(n_bytes))
enum { GAP_BYTES = 0 };
#endif

enum { ALIGNMENT = 64, BLOCK_BYTES = 1 << 20, HUGE_BYTES = 2 << 20 };

struct run_scratch_block {
    struct run_scratch_block *next;
    size_t n_bytes;
    _Alignas(ALIGNMENT) unsigned char data[];
};

static struct run_scratch_block *make_block(size_t n_bytes)
{
    const size_t whole = n_bytes > BLOCK_BYTES ? n_bytes : BLOCK_BYTES;
    const size_t alignment = whole < HUGE_BYTES ? ALIGNMENT : HUGE_BYTES;
    const size_t in_all =
        (sizeof(struct run_scratch_block) + whole + alignment - 1) / alignment * alignment;
    struct run_scratch_block *block = aligned_alloc(alignment, in_all);

    if (block) {
        /* The results of products lie a row apart: each is in another small page. */
        if (whole >= HUGE_BYTES)
            madvise(block, in_all, MADV_HUGEPAGE);
        block->next = NULL;
        block->n_bytes = whole;
        ASAN_POISON_MEMORY_REGION(block->data, whole);
    }
    return block;
}

static float *piece(unsigned char *data, size_t n)
{
    ASAN_UNPOISON_MEMORY_REGION(data, n * sizeof(float));
    return (float *)(void *)data;
}

void run_scratch_fail(const struct run_scratch *scratch)
{
    longjmp(*scratch->out_of_memory, 1);
}

float *run_scratch_take(struct run_scratch *scratch, size_t n)
{
    size_t n_bytes;
    struct run_scratch_block **next;

    if (__builtin_mul_overflow(n, sizeof(float), &n_bytes) || n_bytes > SIZE_MAX / 2)
        run_scratch_fail(scratch);
    n_bytes = (n_bytes + GAP_BYTES + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (scratch->current && scratch->current->n_bytes - scratch->used >= n_bytes) {
        scratch->used += n_bytes;
        return piece(scratch->current->data + scratch->used - n_bytes, n);
    }
    /* A later block that is too small stays in the list and is used again after a release. */
    next = scratch->current ? &scratch->current->next : &scratch->first;
    if (!*next || (*next)->n_bytes < n_bytes) {
        struct run_scratch_block *block = make_block(n_bytes);

        if (!block)
            run_scratch_fail(scratch);
        block->next = *next;
        *next = block;
    }
    scratch->current = *next;
    scratch->used = n_bytes;
    return piece(scratch->current->data, n);
}

struct run_scratch_mark run_scratch_mark(const struct run_scratch *scratch)
{
    return (struct run_scratch_mark){scratch->current, scratch->used};
}

void run_scratch_release(struct run_scratch *scratch, struct run_scratch_mark mark)
{
    struct run_scratch_block *block = mark.block ? mark.block : scratch->first;

    scratch->current = mark.block;
    scratch->used = mark.used;
    for (size_t used = mark.used; block; block = block->next, used = 0)
        ASAN_POISON_MEMORY_REGION(block->data + used, block->n_bytes - used);
}

void run_scratch_free(struct run_scratch *scratch)
{
    struct run_scratch_block *block = scratch->first;

    while (block) {
        struct run_scratch_block *next = block->next;

        ASAN_UNPOISON_MEMORY_REGION(block->data, block->n_bytes);
        free(block);
        block = next;
    }
    *scratch = (struct run_scratch){0};
}

void run_pass_store(const struct run_pass *pass, struct run_cache *cache, const float *rows)
{
    if (run_cache_reserve(cache, pass->first + pass->n) < 0)
        run_scratch_fail(pass->scratch);
    run_cache_store(cache, pass->first, rows, pass->n, cache->width);
}
