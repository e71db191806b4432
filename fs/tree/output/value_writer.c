#include "fs/tree/output/value_writer.h"

#include "fs/tree/output/gguf_bytes.h"
#include "fs/tree/output/json.h"
#include "fs/tree/output/shortest.h"

#include <string.h>

/* Numbers of an array that are written at once. */
#define N_NUMBERS 256u

/* An array whose elements are written one after the other. */
struct array {
    struct gguf_cursor cursor;
    uint64_t n_left; /* elements not yet written */
    enum gguf_value_type element_type;
    unsigned width_bytes; /* of a number; 0 for strings and arrays */
    bool is_first;        /* no element has been written */
};

static struct array begin(const struct gguf_array *array)
{
    return (struct array){.cursor = gguf_array_begin(array),
                          .n_left = array->n_elements,
                          .element_type = array->element_type,
                          .width_bytes = gguf_value_type_bytes(array->element_type),
                          .is_first = true};
}

/* Return true if there is another element, and nothing has failed. */
static bool has_next(const struct array *array, const struct fs_sink *sink)
{
    return array->n_left > 0 && sink->error == 0;
}

static struct gguf_value next(struct array *array)
{
    struct gguf_value element;

    gguf_array_next(&array->cursor, array->element_type, &element);
    array->n_left--;
    array->is_first = false;
    return element;
}

/* ---- arrays of numbers, many at a time ---- */

/* Load up to N_NUMBERS numbers as their bits. Returns how many. */
static size_t load_numbers(struct array *array, uint64_t numbers[N_NUMBERS])
{
    const size_t n = array->n_left < N_NUMBERS ? (size_t)array->n_left : N_NUMBERS;
    const unsigned width_bytes = array->width_bytes;
    struct gguf_cursor *cursor = &array->cursor;
    const uint8_t *bytes = cursor->data + cursor->offset;
    const bool is_swapped = cursor->encoding.big_endian;

    for (size_t i = 0; i < n; i++) {
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;

        switch (width_bytes) {
        case 1:
            numbers[i] = bytes[i];
            break;
        case 2:
            memcpy(&u16, bytes + 2 * i, 2);
            numbers[i] = is_swapped ? __builtin_bswap16(u16) : u16;
            break;
        case 4:
            memcpy(&u32, bytes + 4 * i, 4);
            numbers[i] = is_swapped ? __builtin_bswap32(u32) : u32;
            break;
        default:
            memcpy(&u64, bytes + 8 * i, 8);
            numbers[i] = is_swapped ? __builtin_bswap64(u64) : u64;
        }
    }
    cursor->offset += n * width_bytes;
    array->n_left -= n;
    return n;
}

/* Write a number and return the length of its text. */
static size_t write_number(enum gguf_value_type type, uint64_t number, char *out)
{
    const uint32_t low = (uint32_t)number;
    float f32;
    double f64;

    switch (type) {
    case GGUF_BOOL:
        memcpy(out, number ? "true" : "false", 5);
        return number ? 4 : 5;
    case GGUF_INT8:
        return fs_write_signed((int8_t)number, out);
    case GGUF_INT16:
        return fs_write_signed((int16_t)number, out);
    case GGUF_INT32:
        return fs_write_signed((int32_t)number, out);
    case GGUF_INT64:
        return fs_write_signed((int64_t)number, out);
    case GGUF_FLOAT32:
        memcpy(&f32, &low, sizeof f32);
        return fs_write_float(f32, out);
    case GGUF_FLOAT64:
        memcpy(&f64, &number, sizeof f64);
        return fs_write_double(f64, out);
    default:
        return fs_write_unsigned(number, out);
    }
}

/* Return the sum of the lengths of write_number() for unsigned types; several times as fast. */
static uint64_t count_unsigned(const uint64_t *numbers, size_t n)
{
    uint64_t length = 0;

    for (size_t i = 0; i < n; i++)
        length += fs_count_digits(numbers[i]);
    return length;
}

static bool is_unsigned(enum gguf_value_type type)
{
    return type == GGUF_UINT8 || type == GGUF_UINT16 || type == GGUF_UINT32 || type == GGUF_UINT64;
}

static void write_json_numbers(struct array *array, struct fs_sink *sink)
{
    char text[N_NUMBERS * FS_NUMBER_BYTES];
    uint64_t numbers[N_NUMBERS];
    const size_t n = load_numbers(array, numbers);
    size_t length = 0;

    if (is_unsigned(array->element_type) && fs_sink_only_counts(sink)) {
        fs_sink_count(sink, n - array->is_first + count_unsigned(numbers, n));
        array->is_first = false;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        text[length] = ',';
        length += !array->is_first;
        array->is_first = false;
        length += write_number(array->element_type, numbers[i], text + length);
    }
    fs_sink_write(sink, text, length);
}

/* ---- values ---- */

/* Arrays are nested up to GGUF_MAX_ARRAY_DEPTH deep: the parser refuses others. */
void fs_json_value(struct fs_sink *sink, const struct gguf_value *value)
{
    struct array array;

    if (value->type == GGUF_STRING) {
        fs_json_string(sink, value->string);
        return;
    }
    if (value->type != GGUF_ARRAY) {
        fs_json_scalar(sink, value);
        return;
    }
    array = begin(&value->array);
    fs_sink_literal(sink, "[");
    while (has_next(&array, sink)) {
        if (array.width_bytes > 0) {
            write_json_numbers(&array, sink);
        } else {
            const bool is_first = array.is_first;
            const struct gguf_value element = next(&array);

            fs_sink_literal(sink, is_first ? "" : ",");
            fs_json_value(sink, &element);
        }
    }
    fs_sink_literal(sink, "]");
}

static void write_gguf_numbers(struct array *array, struct fs_sink *sink)
{
    uint64_t numbers[N_NUMBERS];
    const size_t n = load_numbers(array, numbers);

    for (size_t i = 0; i < n; i++)
        fs_gguf_number(sink, numbers[i], array->width_bytes);
}

/* Return true if the source has the array's elements in the current form of GGUF. */
static bool is_current(const struct gguf_array *array)
{
    return !array->encoding.big_endian && array->encoding.length_bytes == sizeof(uint64_t);
}

static void write_gguf_array(struct fs_sink *sink, const struct gguf_array *of)
{
    struct array array = begin(of);

    fs_gguf_number(sink, of->element_type, sizeof(uint32_t));
    fs_gguf_number(sink, of->n_elements, sizeof(uint64_t));
    if (is_current(of)) {
        fs_sink_write(sink, of->data, of->size_bytes);
        return;
    }
    while (has_next(&array, sink)) {
        if (array.width_bytes > 0) {
            write_gguf_numbers(&array, sink);
        } else {
            const struct gguf_value element = next(&array);

            fs_gguf_value(sink, &element);
        }
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
