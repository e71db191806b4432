#include "fs/tree/output/value_writer.h"

#include "fs/tree/output/json.h"

/* Arrays are nested up to GGUF_MAX_ARRAY_DEPTH deep: the parser refuses others. */
void fs_json_value(struct fs_sink *sink, const struct gguf_value *value)
{
    const struct gguf_array *array = &value->array;
    struct gguf_cursor cursor;
    struct gguf_value element;

    if (value->type == GGUF_STRING) {
        fs_json_string(sink, value->string);
        return;
    }
    if (value->type != GGUF_ARRAY) {
        fs_json_scalar(sink, value);
        return;
    }
    cursor = gguf_array_begin(array);
    fs_sink_write(sink, "[", 1);
    for (uint64_t i = 0; i < array->n_elements && sink->error == 0; i++) {
        gguf_array_next(&cursor, array->element_type, &element);
        fs_sink_write(sink, ",", i > 0);
        fs_json_value(sink, &element);
    }
    fs_sink_write(sink, "]", 1);
}

/* ---- GGUF ---- */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers leave in the host's byte order");

void fs_gguf_number(struct fs_sink *sink, uint64_t number, unsigned width_bytes)
{
    fs_sink_write(sink, &number, width_bytes);
}

void fs_gguf_string(struct fs_sink *sink, struct gguf_string string)
{
    fs_gguf_number(sink, string.length_bytes, sizeof string.length_bytes);
    fs_sink_write(sink, string.data, string.length_bytes);
}

/* Return true if the source has the array's elements in the current form of GGUF. */
static bool is_current(const struct gguf_array *array)
{
    return !array->encoding.big_endian && array->encoding.length_bytes == sizeof(uint64_t);
}

static void write_gguf_array(struct fs_sink *sink, const struct gguf_array *array)
{
    struct gguf_cursor cursor = gguf_array_begin(array);
    struct gguf_value element;

    fs_gguf_number(sink, array->element_type, sizeof(uint32_t));
    fs_gguf_number(sink, array->n_elements, sizeof(uint64_t));
    if (is_current(array)) {
        fs_sink_write(sink, array->data, array->size_bytes);
        return;
    }
    for (uint64_t i = 0; i < array->n_elements && sink->error == 0; i++) {
        gguf_array_next(&cursor, array->element_type, &element);
        fs_gguf_value(sink, &element);
    }
}

void fs_gguf_value(struct fs_sink *sink, const struct gguf_value *value)
{
    if (value->type == GGUF_STRING)
        fs_gguf_string(sink, value->string);
    else if (value->type == GGUF_ARRAY)
        write_gguf_array(sink, &value->array);
    else
        fs_sink_write(sink, &value->u64,
                      gguf_value_type_bytes(value->type)); /* or another member */
}
