#include "fs/tree/value_walk.h"

#include "fs/tree/gguf_bytes.h"
#include "fs/tree/json.h"
#include "fs/tree/shortest.h"

#include <string.h>

/* A step writes pieces until they have so many bytes, so that callers have few steps to count. */
#define STEP_BYTES 1024u
/* The longest part of a string in one piece. */
#define STRING_PART_BYTES 4096u
#define N_NUMBERS         256u

/* Write characters around and between values, which only JSON has. */
static void write_mark(const struct fs_value_walk *walk, const char *mark, struct fs_sink *sink)
{
    if (walk->form == FS_AS_JSON)
        fs_sink_write(sink, mark, 1);
}

static void begin_string(struct fs_value_walk *walk, struct gguf_string string,
                         struct fs_sink *sink)
{
    if (walk->form == FS_AS_GGUF)
        fs_gguf_number(sink, string.length_bytes, sizeof(uint64_t));
    write_mark(walk, "\"", sink);
    walk->string = string;
    walk->in_string = true;
}

/* Return true if the source has the array's elements in the current form of GGUF. */
static bool is_current(const struct gguf_array *array)
{
    return !array->encoding.big_endian && array->encoding.length_bytes == sizeof(uint64_t);
}

static void begin_array(struct fs_value_walk *walk, const struct gguf_array *array,
                        struct fs_sink *sink)
{
    if (walk->form == FS_AS_GGUF) {
        fs_gguf_number(sink, array->element_type, sizeof(uint32_t));
        fs_gguf_number(sink, array->n_elements, sizeof(uint64_t));
    }
    if (walk->form == FS_AS_GGUF && is_current(array)) {
        walk->string = (struct gguf_string){(const char *)array->data, array->size_bytes};
        walk->in_string = true;
        return;
    }
    write_mark(walk, "[", sink);
    walk->level[walk->depth++] = (struct fs_array_walk){.cursor = gguf_array_begin(array),
                                                        .n_left = array->n_elements,
                                                        .element_type = array->element_type,
                                                        .is_first = true};
}

static void begin_value(struct fs_value_walk *walk, const struct gguf_value *value,
                        struct fs_sink *sink)
{
    if (value->type == GGUF_STRING)
        begin_string(walk, value->string, sink);
    else if (value->type == GGUF_ARRAY)
        begin_array(walk, &value->array, sink);
    else if (walk->form == FS_AS_JSON)
        fs_json_scalar(sink, value);
    else
        fs_gguf_scalar(sink, value);
}

void fs_value_begin(struct fs_value_walk *walk, enum fs_value_form form,
                    const struct gguf_value *value, struct fs_sink *sink)
{
    walk->form = form;
    walk->depth = 0;
    walk->in_string = false;
    begin_value(walk, value, sink);
}

static void continue_string(struct fs_value_walk *walk, struct fs_sink *sink)
{
    struct gguf_string part = walk->string;
    size_t done;

    if (part.length_bytes > STRING_PART_BYTES)
        part.length_bytes = STRING_PART_BYTES;
    done = part.length_bytes;
    if (walk->form == FS_AS_JSON)
        done = fs_json_string_part(sink, part, part.length_bytes == walk->string.length_bytes);
    else
        fs_sink_write(sink, part.data, part.length_bytes);
    walk->string.data += done;
    walk->string.length_bytes -= done;
    if (walk->string.length_bytes == 0) {
        write_mark(walk, "\"", sink);
        walk->in_string = false;
    }
}

/* ---- arrays of numbers, many at a time ---- */

static void load_numbers(const struct gguf_cursor *cursor, unsigned width_bytes, size_t n,
                         uint64_t *numbers)
{
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

static void write_json_numbers(struct fs_array_walk *array, const uint64_t *numbers, size_t n,
                               struct fs_sink *sink)
{
    char text[N_NUMBERS * FS_NUMBER_BYTES];
    size_t length = 0;

    if (is_unsigned(array->element_type) && !fs_sink_keeps(sink, sizeof text)) {
        sink->position += n - array->is_first + count_unsigned(numbers, n);
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

static void continue_numbers(const struct fs_value_walk *walk, struct fs_array_walk *array,
                             unsigned width_bytes, struct fs_sink *sink)
{
    const size_t n = array->n_left < N_NUMBERS ? (size_t)array->n_left : N_NUMBERS;
    uint64_t numbers[N_NUMBERS];

    load_numbers(&array->cursor, width_bytes, n, numbers);
    array->cursor.offset += n * width_bytes;
    array->n_left -= n;
    if (walk->form == FS_AS_JSON) {
        write_json_numbers(array, numbers, n, sink);
        return;
    }
    for (size_t i = 0; i < n; i++)
        fs_gguf_number(sink, numbers[i], width_bytes);
}

static void continue_array(struct fs_value_walk *walk, struct fs_sink *sink)
{
    struct fs_array_walk *array = &walk->level[walk->depth - 1];
    const unsigned width_bytes = gguf_value_type_bytes(array->element_type);
    struct gguf_value element;

    if (array->n_left == 0) {
        write_mark(walk, "]", sink);
        walk->depth--;
        return;
    }
    if (width_bytes > 0) {
        continue_numbers(walk, array, width_bytes, sink);
        return;
    }
    gguf_array_next(&array->cursor, array->element_type, &element);
    if (!array->is_first)
        write_mark(walk, ",", sink);
    array->is_first = false;
    array->n_left--;
    begin_value(walk, &element, sink);
}

bool fs_value_continue(struct fs_value_walk *walk, struct fs_sink *sink)
{
    const uint64_t start = sink->position;

    while (sink->position - start < STEP_BYTES) {
        if (walk->in_string)
            continue_string(walk, sink);
        else if (walk->depth > 0)
            continue_array(walk, sink);
        else
            return false;
    }
    return true;
}
