#include "gguf/orig_shapes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

static const char prefix[] = "comfy.gguf.orig_shape.";

/* Returns true and the tensor's name if the key holds an original shape. */
static bool is_shape_key(const struct gguf_key *key, struct gguf_string *tensor_name)
{
    const size_t n = sizeof prefix - 1;

    if (key->name.length_bytes <= n || !gguf_string_starts_with(key->name, prefix))
        return false;
    *tensor_name = (struct gguf_string){key->name.data + n, key->name.length_bytes - n};
    return true;
}

/* Returns false, with a warning, if the value is not a shape. */
static bool read_shape(const struct gguf_key *key, struct gguf_shape *shape,
                       struct gguf_report *report)
{
    const struct gguf_array *array = &key->value.array;
    struct gguf_cursor cursor;

    if (key->value.type != GGUF_ARRAY || !gguf_value_type_is_integer(array->element_type) ||
        array->n_elements == 0 || array->n_elements > GGUF_MAX_DIMS) {
        gguf_warning(report, GGUF_RULE_ORIGINAL_SHAPE, gguf_key_place(key),
                     "is ignored: a shape is an array of 1 to %d integers", GGUF_MAX_DIMS);
        return false;
    }
    cursor = gguf_array_begin(array);
    shape->n_dims = (uint32_t)array->n_elements;
    for (uint32_t i = 0; i < shape->n_dims; i++) {
        struct gguf_value dim;

        gguf_array_next(&cursor, array->element_type, &dim);
        shape->dims[i] = dim.u64; /* a negative one is too large for any tensor */
    }
    return true;
}

/* Returns true if the shape has as many elements as the tensor; else adds a warning. */
static bool fits(const struct gguf_key *key, const struct gguf_shape *shape,
                 const struct gguf_tensor *tensor, struct gguf_report *report)
{
    uint64_t n_elements = 1;
    bool is_empty = false, is_too_large = false;

    for (uint32_t i = 0; i < shape->n_dims; i++) {
        is_empty |= shape->dims[i] == 0;
        is_too_large |= __builtin_mul_overflow(n_elements, shape->dims[i], &n_elements);
    }
    if (is_empty ? tensor->n_elements == 0 : !is_too_large && n_elements == tensor->n_elements)
        return true;
    gguf_warning(report, GGUF_RULE_ORIGINAL_SHAPE, gguf_key_place(key),
                 "is ignored: the shape does not have the %" PRIu64 " elements that the tensor has",
                 tensor->n_elements);
    return false;
}

static void find_shape(const struct gguf_model *model, const struct gguf_tensor **sorted,
                       const struct gguf_key *key, struct gguf_shape *shapes,
                       struct gguf_report *report)
{
    const struct gguf_tensor *found;
    struct gguf_string tensor_name;
    struct gguf_shape shape = {0};

    if (!is_shape_key(key, &tensor_name))
        return;
    found = gguf_find_tensor(sorted, model->n_tensors, tensor_name);
    if (!found)
        gguf_warning(report, GGUF_RULE_ORIGINAL_SHAPE, gguf_key_place(key),
                     "there is no such tensor");
    else if (read_shape(key, &shape, report) && fits(key, &shape, found, report))
        shapes[found - model->tensors] = shape;
}

int gguf_find_orig_shapes(const struct gguf_model *model, struct gguf_shape **shapes,
                          struct gguf_report *report)
{
    const struct gguf_tensor **sorted;
    const struct gguf_key *key = gguf_find_key_group(model, prefix);

    *shapes = NULL;
    if (!key)
        return 0;
    *shapes = calloc(model->n_tensors + 1, sizeof **shapes);
    sorted = gguf_tensors_by_name(model);
    if (!*shapes || !sorted) {
        free(*shapes);
        free(sorted);
        *shapes = NULL;
        return -ENOMEM;
    }
    for (; key < model->keys + model->n_keys; key++)
        find_shape(model, sorted, key, *shapes, report);
    free(sorted);
    return 0;
}
