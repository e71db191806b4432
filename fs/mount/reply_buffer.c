#include "fs/mount/reply_buffer.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_PAGE_BYTES ((size_t)2 << 20)
/* From this size on, huge pages pay off: the kernel looks up each page of a reply. */
#define LARGE_BYTES ((size_t)64 << 10)
#define MOST_KEPT   16

/* Kept, because mapping memory for every read takes time. */
static struct {
    atomic_bool is_taken;
    _Atomic(char *) data; /* a huge page; NULL: not allocated yet */
} kept[MOST_KEPT];

char *fs_reply_buffer_take(size_t size, unsigned n_kept)
{
    const bool is_large = size >= LARGE_BYTES && size <= HUGE_PAGE_BYTES;

    for (unsigned i = 0; is_large && i < n_kept && i < MOST_KEPT; i++) {
        if (atomic_exchange(&kept[i].is_taken, true))
            continue;
        if (!kept[i].data) {
            kept[i].data = aligned_alloc(HUGE_PAGE_BYTES, HUGE_PAGE_BYTES);
            madvise(kept[i].data, HUGE_PAGE_BYTES, MADV_HUGEPAGE); /* or pages are small */
        }
        kept[i].is_taken = kept[i].data != NULL;
        return kept[i].data;
    }
    return malloc(size);
}

void fs_reply_buffer_give(char *data)
{
    for (unsigned i = 0; data && i < MOST_KEPT; i++) {
        if (kept[i].data == data) {
            kept[i].is_taken = false;
            return;
        }
    }
    free(data);
}
