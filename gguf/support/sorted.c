#include "gguf/support/sorted.h"

#include <stdlib.h>

const void **gguf_sorted(const void *table, uint64_t count, size_t entry_bytes,
                         int (*compare)(const void *, const void *))
{
    const void **order = calloc(count + 1, sizeof *order);

    if (!order)
        return NULL;
    for (uint64_t i = 0; i < count; i++)
        order[i] = (const char *)table + i * entry_bytes;
    qsort(order, count, sizeof *order, compare);
    return order;
}
