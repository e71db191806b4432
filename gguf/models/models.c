#include "gguf/models/models.h"

#include "gguf/models/model_parts.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct gguf_architecture *const tables[] = {gguf_dense_models, gguf_expert_models,
                                                         gguf_recurrent_models};

const struct gguf_architecture *gguf_architecture_at(size_t index)
{
    for (size_t i = 0; i < COUNT(tables); i++)
        for (const struct gguf_architecture *row = tables[i]; row->name; row++)
            if (index-- == 0)
                return row;
    return NULL;
}

const struct gguf_architecture *gguf_architecture_find(const char *name)
{
    const struct gguf_architecture *row;

    for (size_t i = 0; (row = gguf_architecture_at(i)); i++)
        if (strcmp(row->name, name) == 0)
            return row->same_as ? gguf_architecture_find(row->same_as) : row;
    return NULL;
}

bool gguf_architecture_is_big(const struct gguf_architecture *architecture, uint32_t n_layer,
                              uint32_t n_expert)
{
    const struct gguf_big_model *big = &architecture->big;

    return (big->n_layer > 0 || big->n_expert > 0) &&
           (big->n_layer == 0 || big->n_layer == n_layer) &&
           (big->n_expert == 0 || big->n_expert == n_expert);
}

bool gguf_is_windowed(const struct gguf_architecture *architecture, uint32_t layer, uint32_t period)
{
    return period == 0 || layer % period != (architecture->window.is_first_full ? 0 : period - 1);
}
