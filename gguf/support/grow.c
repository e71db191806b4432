#include "gguf/support/grow.h"

#include <stdint.h>
#include <stdlib.h>

#define FIRST_ROOM ((size_t)4)

void *gguf_grow(void *list, size_t *room, size_t n_needed, size_t entry_bytes)
{
    size_t larger = *room > SIZE_MAX / 2 ? SIZE_MAX : 2 * *room;
    void *grown;

    if (list && n_needed <= *room)
        return list;
    if (larger < n_needed)
        larger = n_needed;
    if (larger < FIRST_ROOM)
        larger = FIRST_ROOM;
    grown = reallocarray(list, larger, entry_bytes);
    if (grown)
        *room = larger;
    return grown;
}
