#include "contrib/runner/engine/architectures.h"

#include "contrib/runner/engine/architecture_rows.h"
#include "contrib/runner/engine/engine.h"

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
            return row;
    return NULL;
}

const char *run_architecture_name(size_t index)
{
    const struct run_architecture *row = row_at(index);

    return row ? row->name : NULL;
}

const struct run_variant *run_architecture_variant(const struct run_architecture *architecture,
                                                   uint32_t n_layer, uint32_t n_expert)
{
    const struct run_variant *variant = &architecture->variant;

    return variant->name && (variant->n_layer == 0 || variant->n_layer == n_layer) &&
                   (variant->n_expert == 0 || variant->n_expert == n_expert)
               ? variant
               : NULL;
}
