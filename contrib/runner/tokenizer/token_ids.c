#include "contrib/runner/tokenizer/token_ids.h"

#include "gguf/support/arrays.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int run_ids_add(struct run_ids *ids, int32_t id)
{
    if (gguf_reserve(&ids->list, &ids->capacity, ids->n + 1, sizeof *ids->list) < 0)
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
