/* Metadata values: all types in every encoding, nested arrays, iteration. */
#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/gguf/model_file.h"

TestSuite(gguf_values, .init = model_file_begin_test);

static const struct gguf_value *value_of(const struct gguf_model *model, const char *key,
                                         enum gguf_value_type type)
{
    const struct gguf_key *found = gguf_find_key(model, key);

    cr_assert_not_null(found, "%s", key);
    cr_assert_eq(found->value.type, type, "%s", key);
    return &found->value;
}

Test(gguf_values, names_and_sizes_of_types)
{
    static const struct {
        const char *name;
        unsigned bytes;
    } types[] = {
        {"uint8", 1},  {"int8", 1},    {"uint16", 2},  {"int16", 2},  {"uint32", 4},
        {"int32", 4},  {"float32", 4}, {"bool", 1},    {"string", 0}, {"array", 0},
        {"uint64", 8}, {"int64", 8},   {"float64", 8},
    };

    cr_assert_eq(COUNT(types), (size_t)GGUF_N_VALUE_TYPES);
    for (uint32_t i = 0; i < COUNT(types); i++) {
        cr_expect_str_eq(gguf_value_type_name(i), types[i].name);
        cr_expect_eq(gguf_value_type_bytes((enum gguf_value_type)i), types[i].bytes);
    }
    cr_expect_null(gguf_value_type_name(13));
    cr_expect_null(gguf_value_type_name(UINT32_MAX));
}

/* Add the limits of every type. */
static void add_extremes(struct gguf_writer *w)
{
    gguf_writer_add_u8(w, "u8", 0);
    gguf_writer_add_u8(w, "u8 max", UINT8_MAX);
    gguf_writer_add_i8(w, "i8 min", INT8_MIN);
    gguf_writer_add_i8(w, "i8 max", INT8_MAX);
    gguf_writer_add_u16(w, "u16 max", UINT16_MAX);
    gguf_writer_add_u16(w, "u16", 0x1234);
    gguf_writer_add_i16(w, "i16 min", INT16_MIN);
    gguf_writer_add_i16(w, "i16 max", INT16_MAX);
    gguf_writer_add_u32(w, "u32 max", UINT32_MAX);
    gguf_writer_add_u32(w, "u32", 0x12345678);
    gguf_writer_add_i32(w, "i32 min", INT32_MIN);
    gguf_writer_add_i32(w, "i32 max", INT32_MAX);
    gguf_writer_add_u64(w, "u64 max", UINT64_MAX);
    gguf_writer_add_u64(w, "u64", 0x123456789abcdef0);
    gguf_writer_add_i64(w, "i64 min", INT64_MIN);
    gguf_writer_add_i64(w, "i64 max", INT64_MAX);
    gguf_writer_add_f32(w, "f32", -1.5e-42f); /* subnormal */
    gguf_writer_add_f32(w, "f32 inf", INFINITY);
    gguf_writer_add_f64(w, "f64", 0.1);
    gguf_writer_add_f64(w, "f64 nan", (double)NAN);
    gguf_writer_add_bool(w, "false", false);
    gguf_writer_add_bool(w, "true", true);
    gguf_writer_add_string(w, "string", "t\xc3\xa9xt");
    gguf_writer_add_string(w, "empty string", "");
}

Test(gguf_values, every_scalar_in_every_encoding)
{
    static const struct {
        const char *key;
        enum gguf_value_type type;
        uint64_t u64;
    } unsigneds[] = {
        {"u8", GGUF_UINT8, 0},
        {"u8 max", GGUF_UINT8, UINT8_MAX},
        {"u16", GGUF_UINT16, 0x1234},
        {"u16 max", GGUF_UINT16, UINT16_MAX},
        {"u32", GGUF_UINT32, 0x12345678},
        {"u32 max", GGUF_UINT32, UINT32_MAX},
        {"u64", GGUF_UINT64, 0x123456789abcdef0},
        {"u64 max", GGUF_UINT64, UINT64_MAX},
    };
    static const struct {
        const char *key;
        enum gguf_value_type type;
        int64_t i64;
    } signeds[] = {
        {"i8 min", GGUF_INT8, INT8_MIN},    {"i8 max", GGUF_INT8, INT8_MAX},
        {"i16 min", GGUF_INT16, INT16_MIN}, {"i16 max", GGUF_INT16, INT16_MAX},
        {"i32 min", GGUF_INT32, INT32_MIN}, {"i32 max", GGUF_INT32, INT32_MAX},
        {"i64 min", GGUF_INT64, INT64_MIN}, {"i64 max", GGUF_INT64, INT64_MAX},
    };

    for (size_t i = 0; i < MODEL_N_ENCODINGS; i++) {
        const struct model_encoding *e = &model_encodings[i];
        struct gguf_writer *w = gguf_writer_open(e->version, e->big_endian);
        struct gguf_model *model;

        add_extremes(w);
        model = model_file_make(w);
        cr_expect_eq(model->n_keys, 24u);
        for (size_t j = 0; j < COUNT(unsigneds); j++)
            cr_expect_eq(value_of(model, unsigneds[j].key, unsigneds[j].type)->u64,
                         unsigneds[j].u64, "%s", unsigneds[j].key);
        for (size_t j = 0; j < COUNT(signeds); j++)
            cr_expect_eq(value_of(model, signeds[j].key, signeds[j].type)->i64, signeds[j].i64,
                         "%s", signeds[j].key);
        cr_expect(value_of(model, "f32", GGUF_FLOAT32)->f32 == -1.5e-42f);
        cr_expect(isinf(value_of(model, "f32 inf", GGUF_FLOAT32)->f32));
        cr_expect(value_of(model, "f64", GGUF_FLOAT64)->f64 == 0.1);
        cr_expect(isnan(value_of(model, "f64 nan", GGUF_FLOAT64)->f64));
        cr_expect_not(value_of(model, "false", GGUF_BOOL)->boolean);
        cr_expect(value_of(model, "true", GGUF_BOOL)->boolean);
        cr_expect(
            gguf_string_equals(value_of(model, "string", GGUF_STRING)->string, "t\xc3\xa9xt"));
        cr_expect_eq(value_of(model, "empty string", GGUF_STRING)->string.length_bytes, 0u);
        gguf_close(model);
    }
}

/* Add an array of three elements of the type. As a number, the second is 1. */
static void add_array_of(struct gguf_writer *w, uint32_t type)
{
    gguf_writer_add_array(w, gguf_value_type_name(type), type, 3);
    for (int i = 0; i < 3; i++) {
        switch (type) {
        case GGUF_WRITER_U8:
            gguf_writer_u8(w, (uint8_t)i);
            break;
        case GGUF_WRITER_I8:
            gguf_writer_i8(w, (int8_t)i);
            break;
        case GGUF_WRITER_U16:
            gguf_writer_u16(w, (uint16_t)i);
            break;
        case GGUF_WRITER_I16:
            gguf_writer_i16(w, (int16_t)i);
            break;
        case GGUF_WRITER_U32:
            gguf_writer_u32(w, (uint32_t)i);
            break;
        case GGUF_WRITER_I32:
            gguf_writer_i32(w, i);
            break;
        case GGUF_WRITER_F32:
            gguf_writer_f32(w, (float)i);
            break;
        case GGUF_WRITER_BOOL:
            gguf_writer_bool(w, i == 1);
            break;
        case GGUF_WRITER_STRING:
            gguf_writer_string(w, "xy", (size_t)i);
            break;
        case GGUF_WRITER_ARRAY:
            gguf_writer_array(w, GGUF_WRITER_U8, (uint64_t)i);
            gguf_writer_raw(w, "xy", (size_t)i);
            break;
        case GGUF_WRITER_U64:
            gguf_writer_u64(w, (uint64_t)i);
            break;
        case GGUF_WRITER_I64:
            gguf_writer_i64(w, i);
            break;
        default:
            gguf_writer_f64(w, i);
        }
    }
}

/* Return an element as a number: the length of a string or array, else its value. */
static uint64_t number_of(const struct gguf_value *element)
{
    switch (element->type) {
    case GGUF_INT8:
    case GGUF_INT16:
    case GGUF_INT32:
    case GGUF_INT64:
        return (uint64_t)element->i64;
    case GGUF_FLOAT32:
        return (uint64_t)element->f32;
    case GGUF_FLOAT64:
        return (uint64_t)element->f64;
    case GGUF_BOOL:
        return element->boolean ? 1 : 0;
    case GGUF_STRING:
        return element->string.length_bytes;
    case GGUF_ARRAY:
        return element->array.n_elements;
    default:
        return element->u64;
    }
}

Test(gguf_values, arrays_of_every_type_in_every_encoding)
{
    for (size_t i = 0; i < MODEL_N_ENCODINGS; i++) {
        const struct model_encoding *e = &model_encodings[i];
        struct gguf_writer *w = gguf_writer_open(e->version, e->big_endian);
        struct gguf_model *model;

        for (uint32_t type = 0; type < GGUF_N_VALUE_TYPES; type++)
            add_array_of(w, type);
        gguf_writer_add_u8(w, "after them", 1);
        model = model_file_make(w);
        value_of(model, "after them", GGUF_UINT8);
        for (uint32_t type = 0; type < GGUF_N_VALUE_TYPES; type++) {
            const struct gguf_array *array =
                &value_of(model, gguf_value_type_name(type), GGUF_ARRAY)->array;
            struct gguf_cursor cursor = gguf_array_begin(array);
            struct gguf_value element;

            cr_expect_eq(array->element_type, type);
            cr_expect_eq(array->n_elements, 3u);
            cr_expect_eq(array->encoding.big_endian, e->big_endian);
            for (uint64_t j = 0; j < 3; j++) {
                gguf_array_next(&cursor, array->element_type, &element);
                cr_expect_eq(element.type, type);
                cr_expect_eq(number_of(&element), type == GGUF_BOOL ? j == 1 : j);
            }
            cr_expect_eq(gguf_cursor_left(&cursor), 0u);
        }
        gguf_close(model);
    }
}

Test(gguf_values, empty_arrays_of_every_type)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct gguf_model *model;

    for (uint32_t type = 0; type < GGUF_N_VALUE_TYPES; type++)
        gguf_writer_add_array(w, gguf_value_type_name(type), type, 0);
    model = model_file_make(w);
    for (uint32_t type = 0; type < GGUF_N_VALUE_TYPES; type++) {
        const struct gguf_array *array =
            &value_of(model, gguf_value_type_name(type), GGUF_ARRAY)->array;

        cr_expect_eq(array->element_type, type);
        cr_expect_eq(array->n_elements, 0u);
        cr_expect_eq(array->size_bytes, 0u);
    }
    gguf_close(model);
}

Test(gguf_values, deepest_nesting)
{
    for (size_t i = 0; i < MODEL_N_ENCODINGS; i++) {
        const struct model_encoding *e = &model_encodings[i];
        struct gguf_writer *w = gguf_writer_open(e->version, e->big_endian);
        struct gguf_model *model;
        struct gguf_value value;

        /* At each level, a second and shallower array follows the deep one. */
        gguf_writer_add_array(w, "deep", GGUF_WRITER_ARRAY, 1);
        for (int depth = 2; depth < GGUF_MAX_ARRAY_DEPTH; depth++)
            gguf_writer_array(w, GGUF_WRITER_ARRAY, 2);
        gguf_writer_array(w, GGUF_WRITER_I32, 2);
        gguf_writer_i32(w, -3);
        gguf_writer_i32(w, 4);
        for (int depth = 2; depth < GGUF_MAX_ARRAY_DEPTH; depth++) {
            gguf_writer_array(w, GGUF_WRITER_STRING, 1);
            gguf_writer_string(w, "shallow", 7);
        }
        gguf_writer_add_u8(w, "after", 9);

        model = model_file_make(w);
        cr_expect_eq(value_of(model, "after", GGUF_UINT8)->u64, 9u);
        value = *value_of(model, "deep", GGUF_ARRAY);
        for (int depth = 1; depth < GGUF_MAX_ARRAY_DEPTH; depth++) {
            struct gguf_cursor cursor = gguf_array_begin(&value.array);
            struct gguf_value shallow;

            cr_assert_eq(value.array.element_type, GGUF_ARRAY);
            gguf_array_next(&cursor, GGUF_ARRAY, &value);
            if (depth == 1)
                continue;
            gguf_array_next(&cursor, GGUF_ARRAY, &shallow);
            cr_expect_eq(shallow.array.element_type, GGUF_STRING);
            cr_expect_eq(gguf_cursor_left(&cursor), 0u);
        }
        cr_expect_eq(value.array.element_type, GGUF_INT32);
        cr_expect_eq(value.array.n_elements, 2u);
        gguf_close(model);
    }
}

Test(gguf_values, reads_one_value)
{
    static const uint8_t bytes[] = {0xff, 0xff, 0xff, 2};
    struct gguf_report report = {0};
    struct gguf_cursor cursor = {.data = bytes,
                                 .size_bytes = 4,
                                 .encoding = {false, 8},
                                 .place = gguf_at_part("here", 0),
                                 .report = &report};
    struct gguf_value value;

    cr_expect_eq(gguf_value_read(&cursor, GGUF_INT16, &value), 0);
    cr_expect_eq(value.i64, -1);
    cr_expect_eq(cursor.offset, 2u);
    cr_expect_eq(gguf_value_read(&cursor, GGUF_FLOAT32, &value), -ENODATA);
    cr_expect_eq(report.first_error.file_offset, 2u);
    cr_expect_not_null(strstr(report.first_error.message, "here"));
    cr_expect_not_null(strstr(report.first_error.message, "2 bytes"));
    cr_expect_eq(report.n_errors, 1u);
}
