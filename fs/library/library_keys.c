#include "fs/library/library.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STRINGS_PER_MARK 256u

static struct ggufs_string string_of(struct gguf_string string)
{
    return (struct ggufs_string){string.data, string.length_bytes};
}

static struct ggufs_key describe(const struct gguf_key *key)
{
    const struct gguf_value *value = &key->value;
    struct ggufs_key made = {.name = string_of(key->name),
                             .type = (enum ggufs_value_type)value->type,
                             .element_type = (enum ggufs_value_type)value->type,
                             .n_elements = 1};

    switch (value->type) {
    case GGUF_ARRAY:
        made.element_type = (enum ggufs_value_type)value->array.element_type;
        made.n_elements = value->array.n_elements;
        break;
    case GGUF_STRING:
        made.string = string_of(value->string);
        break;
    case GGUF_FLOAT32:
        made.f64 = (double)value->f32;
        break;
    case GGUF_FLOAT64:
        made.f64 = value->f64;
        break;
    case GGUF_BOOL:
        made.u64 = value->boolean;
        break;
    case GGUF_INT8:
    case GGUF_INT16:
    case GGUF_INT32:
    case GGUF_INT64:
        made.i64 = value->i64;
        break;
    default:
        made.u64 = value->u64;
    }
    made.element_bytes = gguf_value_type_bytes((enum gguf_value_type)made.element_type);
    return made;
}

/* Return the offsets of every 256th string, or NULL. */
static uint64_t *mark_strings(const struct gguf_array *array)
{
    uint64_t *marks = calloc((size_t)(array->n_elements / STRINGS_PER_MARK) + 1, sizeof *marks);
    struct gguf_cursor cursor = gguf_array_begin(array);
    struct gguf_value string;

    for (uint64_t i = 0; marks && i < array->n_elements; i++) {
        if (i % STRINGS_PER_MARK == 0)
            marks[i / STRINGS_PER_MARK] = cursor.offset;
        gguf_array_next(&cursor, GGUF_STRING, &string);
    }
    return marks;
}

int fs_library_make_keys(struct ggufs_model *model)
{
    const struct gguf_model *from = model->model;
    const size_t n = (size_t)from->n_keys;

    model->keys = calloc(n + 1, sizeof *model->keys);
    model->string_marks = calloc(n + 1, sizeof *model->string_marks);
    if (!model->keys || !model->string_marks)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const struct gguf_value *value = &from->keys[i].value;

        model->keys[i] = describe(&from->keys[i]);
        if (value->type != GGUF_ARRAY || value->array.element_type != GGUF_STRING)
            continue;
        model->string_marks[i] = mark_strings(&value->array);
        if (!model->string_marks[i])
            return -ENOMEM;
    }
    return 0;
}

void fs_library_free_keys(struct ggufs_model *model)
{
    for (size_t i = 0; model->string_marks && i < model->info.n_keys; i++)
        free(model->string_marks[i]);
    free(model->string_marks);
    free(model->keys);
}

const struct ggufs_key *ggufs_key_at(const struct ggufs_model *model, uint64_t index)
{
    return index < model->info.n_keys ? &model->keys[index] : NULL;
}

const struct ggufs_key *ggufs_find_key(const struct ggufs_model *model, const char *name)
{
    const struct gguf_key *key = gguf_find_key(model->model, name);

    return key ? &model->keys[key - model->model->keys] : NULL;
}

static const struct gguf_value *value_of(const struct ggufs_model *model,
                                         const struct ggufs_key *key)
{
    return &model->model->keys[key - model->keys].value;
}

static bool is_past_end(uint64_t first, uint64_t n, uint64_t end)
{
    return first > end || n > end - first;
}

int ggufs_key_numbers(const struct ggufs_model *model, const struct ggufs_key *key, uint64_t first,
                      uint64_t n, void *out)
{
    const struct gguf_value *value = value_of(model, key);
    const struct gguf_array *array = &value->array;
    char *to = out;

    if (key->element_bytes == 0)
        return -EINVAL;
    if (is_past_end(first, n, key->n_elements))
        return -ERANGE;
    if (value->type != GGUF_ARRAY) {
        if (n > 0)
            memcpy(out, &value->u64, key->element_bytes); /* or the member of another type */
        return 0;
    }
    if (!array->encoding.big_endian) {
        if (n > 0)
            memcpy(out, array->data + first * key->element_bytes, (size_t)n * key->element_bytes);
        return 0;
    }
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t bits = gguf_load_number(array->data + (first + i) * key->element_bytes,
                                               key->element_bytes, true);

        memcpy(to + i * key->element_bytes, &bits, key->element_bytes);
    }
    return 0;
}

int ggufs_key_strings(const struct ggufs_model *model, const struct ggufs_key *key, uint64_t first,
                      uint64_t n, struct ggufs_string *out)
{
    const struct gguf_value *value = value_of(model, key);
    struct gguf_cursor cursor;
    struct gguf_value element;
    uint64_t i;

    if (key->element_type != GGUFS_STRING)
        return -EINVAL;
    if (is_past_end(first, n, key->n_elements))
        return -ERANGE;
    if (n == 0)
        return 0;
    if (value->type == GGUF_STRING) {
        *out = key->string;
        return 0;
    }
    cursor = gguf_array_begin(&value->array);
    i = first / STRINGS_PER_MARK;
    cursor.offset = model->string_marks[key - model->keys][i];
    for (i *= STRINGS_PER_MARK; i < first + n; i++) {
        gguf_array_next(&cursor, GGUF_STRING, &element);
        if (i >= first)
            out[i - first] = string_of(element.string);
    }
    return 0;
}
