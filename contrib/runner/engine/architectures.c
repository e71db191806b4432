#include "contrib/runner/engine/architectures.h"

#include "contrib/runner/engine/architecture_rows.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct run_architecture *const parts[] = {run_dense_rows, run_expert_rows,
                                                       run_recurrent_rows};

/* Row `index` of the whole table; NULL after the last. */
static const struct run_architecture *row_at(size_t index)
{
    for (size_t part = 0; part < COUNT(parts); part++)
        for (const struct run_architecture *row = parts[part]; row->name; row++)
            if (index-- == 0)
                return row;
    return NULL;
}

const struct run_architecture *run_architecture_find(const char *name)
{
    const struct run_architecture *row;

    for (size_t i = 0; (row = row_at(i)); i++)
        if (strcmp(row->name, name) == 0)
            return row->same_as ? run_architecture_find(row->same_as) : row;
    return NULL;
}

const char *run_architecture_name(size_t index)
{
    const struct run_architecture *row = row_at(index);

    return row ? row->name : NULL;
}
