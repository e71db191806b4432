#include "fs/tree/json.h"

#include "fs/tree/shortest.h"

#include <cjson/cJSON.h>
#include <unistr.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How much of a string goes through cJSON at a time. */
#define PART_BYTES 1024

void fs_json_literal(struct fs_text *text, const char *literal)
{
    const size_t length = strlen(literal);

    assert(text->capacity - text->length >= length);
    memcpy(text->data + text->length, literal, length);
    text->length += length;
}

/* Arrays hold millions of them, for which printf() takes several times as long. */
static void write_integer(struct fs_text *text, uint64_t magnitude, bool is_negative)
{
    char digits[FS_JSON_SCALAR_BYTES];
    char *start = digits + sizeof digits - 1;

    *start = '\0';
    do {
        *--start = (char)('0' + magnitude % 10);
        magnitude /= 10;
    } while (magnitude > 0);
    if (is_negative)
        *--start = '-';
    fs_json_literal(text, start);
}

void fs_json_scalar(struct fs_text *text, const struct gguf_value *value)
{
    char number[FS_JSON_SCALAR_BYTES];

    switch (value->type) {
    case GGUF_BOOL:
        fs_json_literal(text, value->boolean ? "true" : "false");
        return;
    case GGUF_INT8:
    case GGUF_INT16:
    case GGUF_INT32:
    case GGUF_INT64:
        write_integer(text, value->i64 < 0 ? -(uint64_t)value->i64 : value->u64, value->i64 < 0);
        return;
    case GGUF_FLOAT32:
        fs_shortest_float(value->f32, number);
        break;
    case GGUF_FLOAT64:
        fs_shortest_double(value->f64, number);
        break;
    default:
        write_integer(text, value->u64, false);
        return;
    }
    fs_json_literal(text, number);
}

/* Valid UTF-8 without NUL, at most PART_BYTES. */
static void write_clean(struct fs_text *text, const char *bytes, size_t length)
{
    char copy[PART_BYTES + 1];
    cJSON item = {.type = cJSON_String, .valuestring = copy};
    char *start = text->data + text->length;
    bool is_printed;
    size_t printed;

    memcpy(copy, bytes, length);
    copy[length] = '\0';
    is_printed = cJSON_PrintPreallocated(&item, start, (int)FS_JSON_PART_BYTES(length), false);
    assert(is_printed);
    (void)is_printed;            /* cJSON writes at most six bytes for one */
    printed = strlen(start) - 2; /* without its quotes */
    memmove(start, start + 1, printed);
    text->length += printed;
}

size_t fs_json_string_part(struct fs_text *text, struct gguf_string part, bool is_last)
{
    const uint8_t *bytes = (const uint8_t *)part.data;
    size_t length = part.length_bytes;
    size_t done = 0;

    if (length > PART_BYTES) {
        length = PART_BYTES;
        is_last = false;
    }
    assert(text->capacity - text->length >= FS_JSON_PART_BYTES(length));
    while (done < length) {
        const uint8_t *invalid = u8_check(bytes + done, length - done);
        const size_t end = invalid ? (size_t)(invalid - bytes) : length;
        ucs4_t character;

        while (done < end) {
            const uint8_t *nul = memchr(bytes + done, '\0', end - done);
            const size_t stop = nul ? (size_t)(nul - bytes) : end;

            if (stop > done)
                write_clean(text, part.data + done, stop - done);
            if (nul)
                fs_json_literal(text, "\\u0000");
            done = nul ? stop + 1 : stop;
        }
        if (done < length) {
            char surrogate[] = "\\udcXX";

            if (!is_last && u8_mbtoucr(&character, bytes + done, length - done) == -2)
                break;
            snprintf(surrogate, sizeof surrogate, "\\udc%02x", bytes[done++]);
            fs_json_literal(text, surrogate);
        }
    }
    return done;
}

void fs_json_string(struct fs_text *text, struct gguf_string string)
{
    fs_json_literal(text, "\"");
    while (string.length_bytes > 0) {
        const size_t done = fs_json_string_part(text, string, true);

        string.data += done;
        string.length_bytes -= done;
    }
    fs_json_literal(text, "\"");
}

/* The string as a JSON text that cJSON takes as it is. Returns false if out of memory. */
static bool add_string(cJSON *object, const char *name, struct gguf_string string)
{
    struct fs_text text = {.capacity = FS_JSON_STRING_BYTES(string.length_bytes)};
    cJSON *item;

    text.data = malloc(text.capacity);
    if (!text.data)
        return false;
    fs_json_string(&text, string);
    text.data[text.length] = '\0';
    item = cJSON_AddRawToObject(object, name, text.data);
    free(text.data);
    return item;
}

/* cJSON's own numbers are doubles, which are not exact beyond 2^53. */
static cJSON *create_integer(uint64_t number)
{
    char digits[24];

    snprintf(digits, sizeof digits, "%" PRIu64, number);
    return cJSON_CreateRaw(digits);
}

static bool add_integer(cJSON *object, const char *name, uint64_t number)
{
    return cJSON_AddItemToObject(object, name, create_integer(number));
}

static bool add_dims(cJSON *object, const char *name, const struct gguf_tensor *tensor,
                     bool is_row_major)
{
    cJSON *array = cJSON_AddArrayToObject(object, name);

    for (uint32_t i = 0; array && i < tensor->n_dims; i++) {
        const uint32_t dim = is_row_major ? tensor->n_dims - 1 - i : i;

        if (!cJSON_AddItemToArray(array, create_integer(tensor->ne[dim])))
            return false;
    }
    return array;
}

static bool add_type(cJSON *object, const struct dequant_type *type, uint32_t id)
{
    if (type)
        return cJSON_AddStringToObject(object, "type", type->name) &&
               add_integer(object, "ggml_type", id);
    return cJSON_AddNullToObject(object, "type") && add_integer(object, "ggml_type", id);
}

static bool add_gguf_name(cJSON *object, struct gguf_string name)
{
    return name.length_bytes == 0 || add_string(object, "gguf_name", name);
}

/* Of an old layout, which the type's name does not tell; null if the file does not say which. */
static bool add_era(cJSON *object, const struct dequant_type *type)
{
    if (!type || type->era == DEQUANT_ERA)
        return true;
    if (!dequant_is_decodable(type))
        return cJSON_AddNullToObject(object, "era");
    return add_integer(object, "era", type->era);
}

/* Of types that have one. */
static bool add_row_layout(cJSON *object, const struct dequant_type *type)
{
    if (type->row_header_bytes > 0 &&
        !add_integer(object, "row_header_bytes", type->row_header_bytes))
        return false;
    return type->interleave_rows == 1 ||
           add_integer(object, "interleave_rows", type->interleave_rows);
}

static bool add_sizes(cJSON *object, const struct gguf_tensor *tensor)
{
    if (!tensor->type)
        return cJSON_AddNullToObject(object, "block_size") &&
               cJSON_AddNullToObject(object, "type_size") &&
               cJSON_AddNullToObject(object, "n_bytes");
    return add_integer(object, "block_size", tensor->type->block_elements) &&
           add_integer(object, "type_size", tensor->type->block_bytes) &&
           add_row_layout(object, tensor->type) &&
           add_integer(object, "n_bytes", tensor->size_bytes);
}

int fs_json_tensor_info(struct fs_text *text, const struct gguf_model *model,
                        const struct gguf_tensor *tensor)
{
    const char *path = model->files[tensor->file_index].path;
    cJSON *object = cJSON_CreateObject();
    int result = -ENOMEM;

    if (object && add_string(object, "name", tensor->name) &&
        add_gguf_name(object, tensor->gguf_name) &&
        add_type(object, tensor->type, tensor->type_id) && add_era(object, tensor->type) &&
        add_dims(object, "shape", tensor, true) && add_dims(object, "ne", tensor, false) &&
        add_integer(object, "n_elements", tensor->n_elements) && add_sizes(object, tensor) &&
        add_string(object, "file", (struct gguf_string){path, strlen(path)}) &&
        add_integer(object, "offset", tensor->file_offset)) {
        char *start = text->data + text->length;

        result = -ENOSPC;
        if (cJSON_PrintPreallocated(object, start, (int)(text->capacity - text->length), false)) {
            text->length += strlen(start);
            result = 0;
        }
    }
    cJSON_Delete(object);
    return result;
}

size_t fs_json_tensor_info_bytes(const struct gguf_model *model, const struct gguf_tensor *tensor)
{
    /* Names of the members, type name and numbers of up to 20 digits: well under 1 KiB. */
    return 1024 + FS_JSON_STRING_BYTES(tensor->name.length_bytes) +
           FS_JSON_STRING_BYTES(tensor->gguf_name.length_bytes) +
           FS_JSON_STRING_BYTES(strlen(model->files[tensor->file_index].path));
}
