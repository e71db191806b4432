#include "gguf/values.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static const struct {
    const char *name;
    unsigned bytes; /* 0: the size varies */
} value_types[GGUF_N_VALUE_TYPES] = {
    [GGUF_UINT8] = {"uint8", 1},     [GGUF_INT8] = {"int8", 1},     [GGUF_UINT16] = {"uint16", 2},
    [GGUF_INT16] = {"int16", 2},     [GGUF_UINT32] = {"uint32", 4}, [GGUF_INT32] = {"int32", 4},
    [GGUF_FLOAT32] = {"float32", 4}, [GGUF_BOOL] = {"bool", 1},     [GGUF_STRING] = {"string", 0},
    [GGUF_ARRAY] = {"array", 0},     [GGUF_UINT64] = {"uint64", 8}, [GGUF_INT64] = {"int64", 8},
    [GGUF_FLOAT64] = {"float64", 8},
};

const char *gguf_value_type_name(uint32_t type)
{
    return type < GGUF_N_VALUE_TYPES ? value_types[type].name : NULL;
}

unsigned gguf_value_type_bytes(enum gguf_value_type type)
{
    return value_types[type].bytes;
}

static int fail_bool(const struct gguf_cursor *cursor, uint64_t offset, uint8_t byte)
{
    return gguf_cursor_refuse(cursor, GGUF_RULE_VALUE, -EINVAL, offset,
                              "a bool is %u, but only 0 and 1 are allowed", byte);
}

/* Skip n bools. */
static int skip_bools(struct gguf_cursor *cursor, uint64_t n)
{
    const uint64_t offset = cursor->offset;
    const uint8_t *bytes = gguf_cursor_take(cursor, n);

    if (!bytes)
        return gguf_cursor_fail(cursor, "an array");
    for (uint64_t i = 0; i < n; i++) {
        if (bytes[i] > 1)
            return fail_bool(cursor, offset + i, bytes[i]);
    }
    return 0;
}

static bool is_signed(enum gguf_value_type type)
{
    return type == GGUF_INT8 || type == GGUF_INT16 || type == GGUF_INT32 || type == GGUF_INT64;
}

/* Set a number or a bool to the bytes of it in a file. Each member of the union is little-endian.
 */
static void set_number(struct gguf_value *value, unsigned bytes, uint64_t number)
{
    value->u64 = number;
    if (is_signed(value->type)) /* shifts the sign bit to the top and back */
        value->i64 = (int64_t)(number << (64 - 8 * bytes)) >> (64 - 8 * bytes);
}

static int read_number(struct gguf_cursor *cursor, struct gguf_value *value)
{
    const unsigned bytes = value_types[value->type].bytes;
    uint64_t number;

    if (gguf_cursor_number(cursor, bytes, &number) < 0)
        return gguf_cursor_fail(cursor, value->type == GGUF_BOOL ? "a bool" : "a number");
    if (value->type == GGUF_BOOL && number > 1)
        return fail_bool(cursor, cursor->offset - 1, (uint8_t)number);
    set_number(value, bytes, number);
    return 0;
}

static int read_array(struct gguf_cursor *cursor, unsigned depth, struct gguf_array *array);

/* Skip the elements of an array whose length was checked. */
static int skip_elements(struct gguf_cursor *cursor, const struct gguf_array *array, unsigned depth)
{
    const unsigned bytes = value_types[array->element_type].bytes;
    struct gguf_array element;

    if (array->element_type == GGUF_BOOL)
        return skip_bools(cursor, array->n_elements);
    if (bytes != 0) {
        if (gguf_cursor_skip(cursor, array->n_elements * bytes) < 0)
            return gguf_cursor_fail(cursor, "an array");
        return 0;
    }
    if (array->element_type == GGUF_STRING) {
        if (gguf_cursor_skip_strings(cursor, array->n_elements) < 0)
            return gguf_cursor_fail(cursor, "a string");
        return 0;
    }
    for (uint64_t i = 0; i < array->n_elements; i++) {
        int result = read_array(cursor, depth, &element);

        if (result < 0)
            return result;
    }
    return 0;
}

static int read_array(struct gguf_cursor *cursor, unsigned depth, struct gguf_array *array)
{
    const uint64_t offset = cursor->offset;
    uint64_t smallest_bytes, start;
    uint32_t type;
    int result;

    if (depth > GGUF_MAX_ARRAY_DEPTH)
        return gguf_cursor_refuse(cursor, GGUF_RULE_VALUE, -EINVAL, offset,
                                  "arrays lie in arrays more than %d deep", GGUF_MAX_ARRAY_DEPTH);
    if (gguf_cursor_u32(cursor, &type) < 0)
        return gguf_cursor_fail(cursor, "an array's element type");
    if (type >= GGUF_N_VALUE_TYPES)
        return gguf_cursor_refuse(cursor, GGUF_RULE_VALUE_TYPE, -EINVAL, offset,
                                  "an array's element type is %" PRIu32
                                  ", which is unknown (the last known is %d)",
                                  type, GGUF_N_VALUE_TYPES - 1);
    if (gguf_cursor_length(cursor, &array->n_elements) < 0)
        return gguf_cursor_fail(cursor, "an array's length");

    array->element_type = type;
    smallest_bytes = value_types[type].bytes;
    if (type == GGUF_STRING)
        smallest_bytes = cursor->encoding.length_bytes;
    else if (type == GGUF_ARRAY)
        smallest_bytes = sizeof type + cursor->encoding.length_bytes;
    if (array->n_elements > gguf_cursor_left(cursor) / smallest_bytes)
        return gguf_cursor_refuse(
            cursor, GGUF_RULE_TRUNCATED_METADATA, -ENODATA, offset,
            "an array has a length of %" PRIu64 " elements of type %s, but the "
            "%" PRIu64 " bytes that are left of the file hold at most %" PRIu64
            " (unfinished download?)",
            array->n_elements, value_types[type].name, gguf_cursor_left(cursor),
            gguf_cursor_left(cursor) / smallest_bytes);

    array->encoding = cursor->encoding;
    start = cursor->offset;
    array->data = gguf_cursor_take(cursor, 0);
    result = skip_elements(cursor, array, depth + 1);
    array->size_bytes = cursor->offset - start;
    return result;
}

/* `depth` is the nesting depth that an array starting here has. */
static int read_value(struct gguf_cursor *cursor, enum gguf_value_type type, unsigned depth,
                      struct gguf_value *value)
{
    value->type = type;
    switch (type) {
    case GGUF_STRING:
        return gguf_cursor_string(cursor, &value->string) < 0 ? gguf_cursor_fail(cursor, "a string")
                                                              : 0;
    case GGUF_ARRAY:
        return read_array(cursor, depth, &value->array);
    default:
        return read_number(cursor, value);
    }
}

int gguf_value_read(struct gguf_cursor *cursor, enum gguf_value_type type, struct gguf_value *value)
{
    return read_value(cursor, type, 1, value);
}

bool gguf_value_equals(const struct gguf_value *a, const struct gguf_value *b)
{
    if (a->type != b->type)
        return false;
    if (a->type == GGUF_STRING)
        return gguf_string_compare(a->string, b->string) == 0;
    if (a->type == GGUF_ARRAY)
        return a->array.element_type == b->array.element_type &&
               a->array.n_elements == b->array.n_elements &&
               a->array.size_bytes == b->array.size_bytes &&
               memcmp(a->array.data, b->array.data, a->array.size_bytes) == 0;
    return (a->u64 ^ b->u64) << (64 - 8 * value_types[a->type].bytes) == 0;
}

struct gguf_cursor gguf_array_begin(const struct gguf_array *array)
{
    return (struct gguf_cursor){
        .data = array->data, .size_bytes = array->size_bytes, .encoding = array->encoding};
}

void gguf_array_next(struct gguf_cursor *cursor, enum gguf_value_type element_type,
                     struct gguf_value *element)
{
    const unsigned bytes = value_types[element_type].bytes;

    if (bytes != 0) { /* fast: arrays may have millions of numbers */
        element->type = element_type;
        set_number(
            element, bytes,
            gguf_load_number(cursor->data + cursor->offset, bytes, cursor->encoding.big_endian));
        cursor->offset += bytes;
    } else {
        /* It cannot fail: the array was checked when it was read, and is ours. */
        (void)read_value(cursor, element_type, 1, element);
    }
}

struct gguf_value gguf_value_of_layer(const struct gguf_value *value, uint64_t layer)
{
    const struct gguf_array *array = &value->array;
    struct gguf_value element = *value;

    if (value->type == GGUF_ARRAY && array->n_elements > 0 &&
        value_types[array->element_type].bytes != 0) {
        struct gguf_cursor cursor = gguf_array_begin(array);

        layer = layer < array->n_elements ? layer : array->n_elements - 1;
        cursor.offset += layer * value_types[array->element_type].bytes;
        gguf_array_next(&cursor, array->element_type, &element);
    }
    return element;
}

bool gguf_value_to_double(const struct gguf_value *value, double *number)
{
    if (value->type == GGUF_STRING || value->type == GGUF_ARRAY)
        return false;
    *number = value->type == GGUF_FLOAT32   ? (double)value->f32
              : value->type == GGUF_FLOAT64 ? value->f64
              : value->type == GGUF_BOOL    ? value->boolean
              : is_signed(value->type)      ? (double)value->i64
                                            : (double)value->u64;
    return true;
}
