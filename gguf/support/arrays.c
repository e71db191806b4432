#include "gguf/support/arrays.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM ((size_t)4)

int gguf_reserve(void *list, size_t *room, size_t n_needed, size_t entry_bytes)
{
    size_t larger = *room > SIZE_MAX / 2 ? SIZE_MAX : 2 * *room;
    void *grown;

    if (n_needed <= *room)
        return 0;
    if (larger < n_needed)
        larger = n_needed;
    if (larger < FIRST_ROOM)
        larger = FIRST_ROOM;
    memcpy(&grown, list, sizeof grown);
    grown = reallocarray(grown, larger, entry_bytes);
    if (!grown)
        return -ENOMEM;
    memcpy(list, &grown, sizeof grown);
    *room = larger;
    return 0;
}

int gguf_buffer_add(struct gguf_buffer *buffer, const void *bytes, size_t length)
{
    size_t needed;

    if (__builtin_add_overflow(buffer->length, length, &needed) ||
        __builtin_add_overflow(needed, 1, &needed) ||
        gguf_reserve(&buffer->bytes, &buffer->capacity, needed, 1) < 0)
        return -ENOMEM;
    if (length > 0)
        memcpy(buffer->bytes + buffer->length, bytes, length);
    buffer->length += length;
    buffer->bytes[buffer->length] = '\0';
    return 0;
}

int gguf_buffer_add_string(struct gguf_buffer *buffer, const char *string)
{
    return gguf_buffer_add(buffer, string, strlen(string));
}

void gguf_buffer_drop(struct gguf_buffer *buffer, size_t n)
{
    if (n == 0)
        return;
    memmove(buffer->bytes, buffer->bytes + n, buffer->length - n);
    buffer->length -= n;
    buffer->bytes[buffer->length] = '\0';
}

void gguf_buffer_free(struct gguf_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct gguf_buffer){0};
}

size_t gguf_find_end(const uint64_t *ends, size_t count, size_t entry_bytes, uint64_t offset)
{
    size_t low = 0, high = count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        uint64_t end;

        memcpy(&end, (const char *)ends + middle * entry_bytes, sizeof end);
        if (end > offset)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

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
