#include "gguf/tensor_order.h"

#include "gguf/support/arrays.h"

#include <stdlib.h>

static int compare_names(const void *a, const void *b)
{
    const struct gguf_tensor *first = *(const struct gguf_tensor *const *)a;
    const struct gguf_tensor *second = *(const struct gguf_tensor *const *)b;
    const int order = gguf_string_compare(first->name, second->name);

    return order != 0 ? order : (first > second) - (first < second);
}

static int compare_offsets(const void *a, const void *b)
{
    const struct gguf_tensor *first = *(const struct gguf_tensor *const *)a;
    const struct gguf_tensor *second = *(const struct gguf_tensor *const *)b;

    if (first->file_index != second->file_index)
        return first->file_index < second->file_index ? -1 : 1;
    if (first->file_offset != second->file_offset)
        return first->file_offset < second->file_offset ? -1 : 1;
    if (!first->type != !second->type)
        return first->type ? -1 : 1;
    return (first > second) - (first < second);
}

static int compare_to_name(const void *name, const void *tensor)
{
    return gguf_string_compare(*(const struct gguf_string *)name,
                               (*(const struct gguf_tensor *const *)tensor)->name);
}

static const struct gguf_tensor **sorted(const struct gguf_model *model,
                                         int (*compare)(const void *, const void *))
{
    return (const struct gguf_tensor **)gguf_sorted(model->tensors, model->n_tensors,
                                                    sizeof *model->tensors, compare);
}

const struct gguf_tensor **gguf_tensors_by_name(const struct gguf_model *model)
{
    return sorted(model, compare_names);
}

const struct gguf_tensor **gguf_tensors_by_offset(const struct gguf_model *model)
{
    return sorted(model, compare_offsets);
}

const struct gguf_tensor *gguf_find_tensor(const struct gguf_tensor *const *by_name,
                                           uint64_t n_tensors, struct gguf_string name)
{
    const struct gguf_tensor *const *found =
        bsearch(&name, by_name, n_tensors, sizeof *by_name, compare_to_name);

    return found ? *found : NULL;
}
