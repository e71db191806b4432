#include "gguf/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void gguf_close(struct gguf_model *model)
{
    if (!model)
        return;
    for (uint64_t i = 0; i < model->n_keys; i++)
        free((void *)(uintptr_t)model->keys[i].name.data);
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        free((void *)(uintptr_t)model->tensors[i].name.data);
        free((void *)(uintptr_t)model->tensors[i].gguf_name.data);
    }
    for (uint32_t i = 0; i < model->n_files; i++)
        gguf_map_close(&model->files[i]);
    for (size_t i = 0; i < model->n_kept; i++)
        free(model->kept[i]);
    free(model->kept);
    free(model->keys);
    free(model->tensors);
    free(model->files);
    free(model);
}

void *gguf_keep(struct gguf_model *model, size_t n_bytes)
{
    void **kept = reallocarray(model->kept, model->n_kept + 1, sizeof *kept);
    void *memory;

    if (!kept)
        return NULL;
    model->kept = kept;
    memory = calloc(n_bytes ? n_bytes : 1, 1);
    if (memory)
        model->kept[model->n_kept++] = memory;
    return memory;
}

int gguf_add_key(struct gguf_model *model, const char *name, struct gguf_value value)
{
    struct gguf_key *keys = reallocarray(model->keys, model->n_keys + 1, sizeof *keys);
    struct gguf_key key = {.name = {name, strlen(name)}, .value = value};

    if (!keys)
        return -ENOMEM;
    model->keys = keys;
    if (gguf_string_copy(&key.name) < 0)
        return -ENOMEM;
    model->keys[model->n_keys++] = key;
    return 0;
}

const struct gguf_key *gguf_find_key(const struct gguf_model *model, const char *name)
{
    for (uint64_t i = 0; i < model->n_keys; i++) {
        if (gguf_string_equals(model->keys[i].name, name))
            return &model->keys[i];
    }
    return NULL;
}

const char *gguf_path_to_report(const struct gguf_model *model, uint32_t file_index)
{
    return file_index == model->named_file ? NULL : model->files[file_index].path;
}

int gguf_remove_key(struct gguf_model *model, const char *name)
{
    const struct gguf_key *key = gguf_find_key(model, name);
    uint64_t index;

    if (!key)
        return -ENOENT;
    index = (uint64_t)(key - model->keys);
    free((void *)(uintptr_t)key->name.data);
    model->n_keys--;
    memmove(&model->keys[index], &model->keys[index + 1],
            (model->n_keys - index) * sizeof *model->keys);
    return 0;
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
    /* Values that were made lie elsewhere. */
    if ((uintptr_t)end - (uintptr_t)model->files[0].data > model->files[0].size_bytes)
        return 0;
    return (uint64_t)(end - model->files[0].data);
}
