#include "contrib/runner/tokenizer/token_ids.h"

#include "gguf/support/arrays.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int run_reserve(void *list, size_t *capacity, size_t n, size_t element_bytes)
{
    void *old, *grown;

    if (n <= *capacity)
        return 0;
    memcpy(&old, list, sizeof old);
    grown = gguf_grow(old, capacity, n, element_bytes);
    if (!grown)
        return -ENOMEM;
    memcpy(list, &grown, sizeof grown);
    return 0;
}

int run_ids_add(struct run_ids *ids, int32_t id)
{
    if (run_reserve(&ids->list, &ids->capacity, ids->n + 1, sizeof *ids->list) < 0)
        ids->is_short = true;
    if (ids->is_short)
        return -ENOMEM;
    ids->list[ids->n++] = id;
    return 0;
}

void run_ids_free(struct run_ids *ids)
{
    free(ids->list);
    *ids = (struct run_ids){0};
}
