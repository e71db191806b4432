#include "fs/tree/output/value_writer.h"

#include "fs/tree/output/gguf_bytes.h"
#include "fs/tree/output/json.h"
#include "fs/tree/output/shortest.h"

/* Numbers counted before the sink may call is_stopped() again: 20 KiB at most. */
#define COUNTED_AT_ONCE 1024

static bool is_signed(enum gguf_value_type type)
{
    return type == GGUF_INT8 || type == GGUF_INT16 || type == GGUF_INT32 || type == GGUF_INT64;
}

static bool is_integer(enum gguf_value_type type)
{
    return is_signed(type) || type == GGUF_UINT8 || type == GGUF_UINT16 || type == GGUF_UINT32 ||
           type == GGUF_UINT64;
}

/* Count the characters of integers and of commas between them. Faster than writing them. */
static void count_integers(struct fs_sink *sink, const struct gguf_array *array)
{
    const unsigned bytes = gguf_value_type_bytes(array->element_type);

    for (uint64_t i = 0; i < array->n_elements && sink->error == 0; i++) {
        uint64_t number =
            gguf_load_number(array->data + i * bytes, bytes, array->encoding.big_endian);
        const bool is_negative = is_signed(array->element_type) && number >> (8 * bytes - 1) != 0;

        if (is_negative)
            number = (~number + 1) & UINT64_MAX >> (64 - 8 * bytes);
        sink->position += fs_count_digits(number) + (i > 0) + is_negative;
        if (i % COUNTED_AT_ONCE == 0)
            fs_sink_write(sink, "", 0);
    }
}

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
    if (is_integer(array->element_type) && fs_sink_only_counts(sink)) {
        count_integers(sink, array);
    } else {
        for (uint64_t i = 0; i < array->n_elements && sink->error == 0; i++) {
            gguf_array_next(&cursor, array->element_type, &element);
            fs_sink_write(sink, ",", i > 0);
            fs_json_value(sink, &element);
        }
    }
    fs_sink_write(sink, "]", 1);
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
        fs_gguf_scalar(sink, value);
}
