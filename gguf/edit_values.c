#include "gguf/edit_values.h"

#include "gguf/support/arrays.h"

#include <cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* cJSON reads numbers as double, which holds every integer below this. */
#define EXACT_INTEGERS 0x1p53

/* The names of types as edits write them; the specification's names are accepted, too. */
static const char *const names[GGUF_N_VALUE_TYPES] = {
    "u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "str", "arr", "u64", "i64", "f64"};

struct job {
    struct gguf_value value;
    struct gguf_buffer data; /* of a string or array, as in a GGUF file */
    struct gguf_string key;
    struct gguf_report *report;
};

#define REFUSE(job, format, ...)                                                                   \
    gguf_error((job)->report, GGUF_RULE_EDIT, -EINVAL, gguf_at_key((job)->key, GGUF_NO_OFFSET),    \
               format, __VA_ARGS__)

/* ---- types ---- */

/* Returns GGUF_N_VALUE_TYPES for an unknown name. */
static enum gguf_value_type find_type(struct gguf_string name)
{
    enum gguf_value_type type = 0;

    while (type < GGUF_N_VALUE_TYPES && !gguf_string_equals(name, names[type]) &&
           !gguf_string_equals(name, gguf_value_type_name(type)))
        type++;
    return type;
}

bool gguf_edit_read_type(struct gguf_string name, struct gguf_edit_type *type)
{
    static const char arr[] = "arr[";
    const size_t head_bytes = sizeof arr - 1;

    *type = (struct gguf_edit_type){find_type(name), GGUF_N_VALUE_TYPES};
    if (type->type == GGUF_N_VALUE_TYPES && gguf_string_starts_with(name, arr) &&
        gguf_string_ends_with(name, "]")) {
        type->element = find_type(
            (struct gguf_string){name.data + head_bytes, name.length_bytes - head_bytes - 1});
        if (type->element < GGUF_N_VALUE_TYPES && type->element != GGUF_ARRAY)
            type->type = GGUF_ARRAY;
    }
    return type->type < GGUF_N_VALUE_TYPES;
}

struct gguf_edit_type gguf_edit_type_of(const struct gguf_value *value)
{
    struct gguf_edit_type type = {value->type, GGUF_N_VALUE_TYPES};

    if (value->type == GGUF_ARRAY && value->array.element_type != GGUF_ARRAY)
        type.element = value->array.element_type;
    return type;
}

struct gguf_edit_type_name gguf_edit_type_name(struct gguf_edit_type type)
{
    struct gguf_edit_type_name name;

    if (type.element < GGUF_N_VALUE_TYPES)
        snprintf(name.text, sizeof name.text, "arr[%s]", names[type.element]);
    else
        snprintf(name.text, sizeof name.text, "%s", names[type.type]);
    return name;
}

static bool is_number(enum gguf_value_type type)
{
    return type != GGUF_BOOL && type != GGUF_STRING;
}

/* ---- scalars ---- */

static int parse_integer(const struct job *job, const char *text, struct gguf_value *value)
{
    const bool is_negative = *text == '-', is_signed = *names[value->type] == 'i';
    const char *digits = text + (is_negative || *text == '+');
    const unsigned n_bits = 8 * gguf_value_type_bytes(value->type) - is_signed;
    const uint64_t most = UINT64_MAX >> (64 - n_bits);
    const uint64_t limit = !is_negative ? most : is_signed ? most + 1 : 0;
    uint64_t number;
    char *end;

    errno = 0;
    number = strtoull(digits, &end, 10);
    if (!isdigit((unsigned char)*digits) || *end != '\0')
        return REFUSE(job, "%s is not an integer, and the type is %s",
                      gguf_quote(gguf_string_of(text)).text, names[value->type]);
    if (errno != 0 || number > limit)
        return REFUSE(job, "%s is outside the range of %s, %" PRId64 " to %" PRIu64,
                      gguf_quote(gguf_string_of(text)).text, names[value->type],
                      is_signed ? -(int64_t)most - 1 : 0, most);
    value->u64 = is_negative ? -number : number;
    return 0;
}

static int parse_float(const struct job *job, const char *text, struct gguf_value *value)
{
    double number;
    char *end;

    errno = 0;
    number = value->type == GGUF_FLOAT32 ? (double)strtof(text, &end) : strtod(text, &end);
    if (end == text || *end != '\0' || isspace((unsigned char)*text))
        return REFUSE(job, "%s is not a number, and the type is %s",
                      gguf_quote(gguf_string_of(text)).text, names[value->type]);
    if (isinf(number) && errno == ERANGE) /* not for "inf" */
        return REFUSE(job, "%s is outside the range of %s", gguf_quote(gguf_string_of(text)).text,
                      names[value->type]);
    if (value->type == GGUF_FLOAT32)
        value->f32 = (float)number;
    else
        value->f64 = number;
    return 0;
}

static int parse_scalar(const struct job *job, const char *text, struct gguf_value *value)
{
    switch (value->type) {
    case GGUF_BOOL:
        if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
            return REFUSE(job, "%s is neither true nor false",
                          gguf_quote(gguf_string_of(text)).text);
        value->boolean = *text == 't';
        return 0;
    case GGUF_FLOAT32:
    case GGUF_FLOAT64:
        return parse_float(job, text, value);
    default:
        return parse_integer(job, text, value);
    }
}

static int scalar_from_json(const struct job *job, const cJSON *json, struct gguf_value *value)
{
    const bool is_float = value->type == GGUF_FLOAT32 || value->type == GGUF_FLOAT64;
    char text[40];

    if (cJSON_IsString(json) && value->type != GGUF_BOOL)
        return parse_scalar(job, json->valuestring, value);
    if (cJSON_IsBool(json) != (value->type == GGUF_BOOL) ||
        (!cJSON_IsBool(json) && !cJSON_IsNumber(json)))
        return REFUSE(job, "a value in the JSON is not of type %s", names[value->type]);
    if (cJSON_IsBool(json))
        return parse_scalar(job, cJSON_IsTrue(json) ? "true" : "false", value);
    if (isinf(json->valuedouble))
        return REFUSE(job, "a number is outside the range of %s", names[value->type]);
    if (!is_float && fabs(json->valuedouble) >= EXACT_INTEGERS)
        return REFUSE(job,
                      "%.17g may have lost digits; in JSON, quote integers from 2^53 on, like "
                      "\"%" PRIu64 "\"",
                      json->valuedouble, UINT64_MAX);
    /* Adding 0 makes an integer of -0. */
    snprintf(text, sizeof text, "%.17g", is_float ? json->valuedouble : json->valuedouble + 0.0);
    return parse_scalar(job, text, value);
}

/* ---- data: elements as in a GGUF file ---- */

static int put(struct job *job, const void *bytes, size_t n_bytes)
{
    const int result = gguf_buffer_add(&job->data, bytes, n_bytes);

    return result < 0 ? gguf_system_error(job->report, result, GGUF_NO_PLACE) : 0;
}

static int put_string(struct job *job, const char *text)
{
    const uint64_t length_bytes = strlen(text);
    const int result = put(job, &length_bytes, sizeof length_bytes);

    return result < 0 ? result : put(job, text, length_bytes);
}

static int put_head(struct job *job, enum gguf_value_type type, uint64_t n_elements)
{
    const uint32_t id = type;
    const int result = put(job, &id, sizeof id);

    return result < 0 ? result : put(job, &n_elements, sizeof n_elements);
}

/* ---- arrays ---- */

/*
 * Find the type of the elements of an array, at any depth, as gguf-py does: i32 for integers if
 * they fit, f32 for numbers with a fraction. *type is the type of earlier ones, or
 * GGUF_N_VALUE_TYPES.
 */
static int imply_type(const struct job *job, const cJSON *array, enum gguf_value_type *type)
{
    const cJSON *element;
    int result = 0;

    cJSON_ArrayForEach(element, array)
    {
        const double number = element->valuedouble;
        const enum gguf_value_type own = cJSON_IsString(element)                      ? GGUF_STRING
                                         : cJSON_IsBool(element)                      ? GGUF_BOOL
                                         : number != floor(number)                    ? GGUF_FLOAT32
                                         : number >= INT32_MIN && number <= INT32_MAX ? GGUF_INT32
                                                                                      : GGUF_INT64;

        if (cJSON_IsArray(element))
            result = imply_type(job, element, type);
        else if (cJSON_IsNull(element) || cJSON_IsObject(element))
            result = REFUSE(job, "an array holds %s", "null or an object");
        else if (*type == GGUF_N_VALUE_TYPES || *type == own)
            *type = own;
        else if (!is_number(*type) || !is_number(own))
            result = REFUSE(job, "an array holds %s", "values of different kinds");
        else
            *type = *type == GGUF_FLOAT32 || own == GGUF_FLOAT32 ? GGUF_FLOAT32 : GGUF_INT64;
        if (result < 0)
            return result;
    }
    return 0;
}

static bool holds_arrays(const cJSON *array)
{
    return array->child && cJSON_IsArray(array->child);
}

static int put_elements(struct job *job, const cJSON *array, enum gguf_value_type type,
                        unsigned depth);

static int put_element(struct job *job, const cJSON *element, enum gguf_value_type type,
                       unsigned depth)
{
    struct gguf_value value = {.type = type};
    int result;

    if (cJSON_IsArray(element)) {
        result = put_head(job, holds_arrays(element) ? GGUF_ARRAY : type,
                          (uint64_t)cJSON_GetArraySize(element));
        return result < 0 ? result : put_elements(job, element, type, depth + 1);
    }
    if (type == GGUF_STRING) {
        if (!cJSON_IsString(element))
            return REFUSE(job, "a value in the JSON is not of type %s", names[type]);
        return put_string(job, element->valuestring);
    }
    result = scalar_from_json(job, element, &value);
    /* Little-endian, as the host is: the low bytes come first. */
    return result < 0 ? result : put(job, &value.u64, gguf_value_type_bytes(type));
}

static int put_elements(struct job *job, const cJSON *array, enum gguf_value_type type,
                        unsigned depth)
{
    const cJSON *element;

    if (depth > GGUF_MAX_ARRAY_DEPTH)
        return REFUSE(job, "arrays are nested more than %d deep", GGUF_MAX_ARRAY_DEPTH);
    cJSON_ArrayForEach(element, array)
    {
        int result;

        if (cJSON_IsArray(element) != holds_arrays(array))
            return REFUSE(job, "an array holds %s", "arrays and other values");
        result = put_element(job, element, type, depth);
        if (result < 0)
            return result;
    }
    return 0;
}

static int set_array(struct job *job, const cJSON *array, enum gguf_value_type type)
{
    int result = 0;

    if (!cJSON_IsArray(array))
        return REFUSE(job, "the JSON is not %s", "an array");
    if (type == GGUF_N_VALUE_TYPES)
        result = imply_type(job, array, &type);
    if (type == GGUF_N_VALUE_TYPES)
        type = GGUF_INT32;
    job->value.array = (struct gguf_array){.element_type = holds_arrays(array) ? GGUF_ARRAY : type,
                                           .n_elements = (uint64_t)cJSON_GetArraySize(array),
                                           .encoding = {.length_bytes = sizeof(uint64_t)}};
    return result < 0 ? result : put_elements(job, array, type, 1);
}

static int set_array_text(struct job *job, const char *text, enum gguf_value_type type)
{
    char place[sizeof(struct gguf_quoted) + 8];
    cJSON *array;
    int result;

    snprintf(place, sizeof place, "key %s", gguf_quote(job->key).text);
    result = gguf_edit_parse_json(text, strlen(text), place, &array, job->report);
    if (result == 0)
        result = set_array(job, array, type);
    cJSON_Delete(array);
    return result;
}

/* ---- values ---- */

static int set_value(struct job *job, const cJSON *json, bool is_text, enum gguf_value_type element)
{
    switch (job->value.type) {
    case GGUF_STRING:
        return cJSON_IsString(json) ? put(job, json->valuestring, strlen(json->valuestring))
                                    : REFUSE(job, "the JSON is not %s", "a string");
    case GGUF_ARRAY:
        return is_text ? set_array_text(job, json->valuestring, element)
                       : set_array(job, json, element);
    default:
        return is_text ? parse_scalar(job, json->valuestring, &job->value)
                       : scalar_from_json(job, json, &job->value);
    }
}

int gguf_edit_value_make(struct gguf_value *value, struct gguf_model *model, struct gguf_string key,
                         struct gguf_edit_type type, const struct cJSON *json, bool is_text,
                         struct gguf_report *report)
{
    struct job job = {.value.type = type.type, .key = key, .report = report};
    int result = set_value(&job, json, is_text, type.element);
    void *data = result == 0 && model ? gguf_model_alloc(model, job.data.length) : NULL;

    if (data && job.data.length > 0)
        memcpy(data, job.data.bytes, job.data.length);
    if (job.value.type == GGUF_STRING)
        job.value.string = (struct gguf_string){data, job.data.length};
    if (job.value.type == GGUF_ARRAY) {
        job.value.array.data = data;
        job.value.array.size_bytes = job.data.length;
    }
    gguf_buffer_free(&job.data);
    *value = job.value;
    return result == 0 && model && !data ? gguf_system_error(report, -ENOMEM, GGUF_NO_PLACE)
                                         : result;
}

/* cJSON would end the string at a NUL. */
static bool has_nul(const char *text, size_t length_bytes)
{
    if (memchr(text, '\0', length_bytes))
        return true;
    while ((text = strchr(text, '\\')) != NULL && text[1] != '\0') {
        if (strncmp(text, "\\u0000", 6) == 0)
            return true;
        text += 2; /* also over an escaped backslash */
    }
    return false;
}

int gguf_edit_parse_json(const char *text, size_t length_bytes, const char *place,
                         struct cJSON **json, struct gguf_report *report)
{
    const char *end = text;

    *json = NULL;
    if (has_nul(text, length_bytes))
        return gguf_error(report, GGUF_RULE_EDIT, -EINVAL, gguf_at_part(place, GGUF_NO_OFFSET),
                          "the JSON holds a NUL");
    *json = cJSON_ParseWithOpts(text, &end, 1);
    if (*json)
        return 0;
    return gguf_error(report, GGUF_RULE_EDIT, -EINVAL, gguf_at_part(place, GGUF_NO_OFFSET),
                      "not JSON from character %td on: %s", end - text + 1,
                      *end ? gguf_quote(gguf_string_of(end)).text : "it ends there");
}
