#include "gguf/model.h"

#include <stdlib.h>

void gguf_close(struct gguf_model *model)
{
    if (!model)
        return;
    for (uint64_t i = 0; i < model->n_keys; i++)
        free((void *)(uintptr_t)model->keys[i].name.data);
    for (uint64_t i = 0; i < model->n_tensors; i++)
        free((void *)(uintptr_t)model->tensors[i].name.data);
    for (uint32_t i = 0; i < model->n_files; i++)
        gguf_map_close(&model->files[i]);
    free(model->keys);
    free(model->tensors);
    free(model->files);
    free(model);
}

const struct gguf_key *gguf_find_key(const struct gguf_model *model, const char *name)
{
    for (uint64_t i = 0; i < model->n_keys; i++) {
        if (gguf_string_equals(model->keys[i].name, name))
            return &model->keys[i];
    }
    return NULL;
}

uint64_t gguf_value_end(const struct gguf_model *model, const struct gguf_value *value)
{
    const uint8_t *end;

    if (value->type == GGUF_STRING)
        end = (const uint8_t *)value->string.data + value->string.length_bytes;
    else if (value->type == GGUF_ARRAY)
        end = value->array.data + value->array.size_bytes;
    else
        return 0;
    return (uint64_t)(end - model->files[0].data);
}
