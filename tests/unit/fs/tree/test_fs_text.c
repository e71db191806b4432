/* JSON of values of all types and lengths: it parses back to the value, and any slice is right. */
#include <criterion/criterion.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/tree/views/view_files.h"
#include "fs/tree/output/shortest.h"
#include "fs/tree/output/value_writer.h"
#include "tests/unit/gguf/model_file.h"
#include "tests/unit/fs/tree_file.h"

TestSuite(fs_text, .init = model_file_begin_test);

/* Compare a value with what cJSON parsed. */
static void compare(const struct gguf_value *value, const cJSON *json)
{
    struct gguf_cursor cursor;
    struct gguf_value element;
    const cJSON *child;
    uint64_t n = 0;

    switch (value->type) {
    case GGUF_STRING:
        cr_assert(cJSON_IsString(json));
        cr_assert(gguf_string_equals(value->string, json->valuestring));
        break;
    case GGUF_ARRAY:
        cr_assert(cJSON_IsArray(json));
        cursor = gguf_array_begin(&value->array);
        cJSON_ArrayForEach(child, json)
        {
            cr_assert_lt(n++, value->array.n_elements);
            gguf_array_next(&cursor, value->array.element_type, &element);
            compare(&element, child);
        }
        cr_assert_eq(n, value->array.n_elements);
        break;
    case GGUF_BOOL:
        cr_assert(cJSON_IsBool(json));
        cr_assert_eq(cJSON_IsTrue(json), value->boolean);
        break;
    case GGUF_FLOAT32:
        cr_assert(cJSON_IsNumber(json));
        cr_assert((float)json->valuedouble == value->f32);
        break;
    case GGUF_FLOAT64:
        cr_assert(cJSON_IsNumber(json));
        cr_assert(json->valuedouble == value->f64);
        break;
    case GGUF_INT8:
    case GGUF_INT16:
    case GGUF_INT32:
    case GGUF_INT64:
        cr_assert(cJSON_IsNumber(json));
        cr_assert_eq(json->valuedouble, (double)value->i64);
        break;
    default:
        cr_assert(cJSON_IsNumber(json));
        cr_assert_eq(json->valuedouble, (double)value->u64);
    }
}

/* Finish the file, whose first key is "k", and check metadata/k.json. */
static void check_key(struct gguf_writer *w, size_t at_least_bytes)
{
    struct gguf_model *model = model_file_make(w);
    struct fs_tree *tree = tree_file_make_tree(model);
    struct tree_file file = tree_file_read(tree, "metadata/k.json");
    cJSON *json;

    cr_expect_geq(file.size_bytes, at_least_bytes);
    json = tree_file_parse(&file);
    compare(&model->keys[0].value, json);
    cJSON_Delete(json);
    free(file.bytes);
    fs_tree_free(tree);
    gguf_close(model);
}

Test(fs_text, numbers)
{
    for (int big_endian = 0; big_endian < 2; big_endian++) {
        struct gguf_writer *w = gguf_writer_open(3, big_endian);
        uint64_t state = 1;

        gguf_writer_add_array(w, "k", GGUF_WRITER_F32, 8000);
        for (int i = 0; i < 8000; i++)
            gguf_writer_f32(w, (float)(int32_t)model_file_random(&state) / 1024);
        check_key(w, 9 * 8000);

        w = gguf_writer_open(3, big_endian);
        gguf_writer_add_array(w, "k", GGUF_WRITER_I64, 5000);
        for (int i = 0; i < 5000; i++)
            gguf_writer_i64(w, (int64_t)model_file_random(&state));
        check_key(w, 18 * 5000);

        w = gguf_writer_open(3, big_endian);
        gguf_writer_add_array(w, "k", GGUF_WRITER_BOOL, 20000);
        for (int i = 0; i < 20000; i++)
            gguf_writer_bool(w, model_file_random(&state) & 1);
        check_key(w, 4 * 20000);
    }
}

/* Add a string of about `length` bytes: characters of all widths, no NUL. */
static void add_text(struct gguf_writer *w, size_t length)
{
    static const char *const characters[] = {
        "a", "\"", "\n", "\x1f", "\xc3\xa9", "\xe2\x96\x81", "\xf0\x9f\x8c\x8d"};
    char *text = malloc(length + 4);
    uint64_t state = length;
    size_t used = 0;

    cr_assert_not_null(text);
    while (used < length) {
        const char *c = characters[model_file_random(&state) % COUNT(characters)];

        memcpy(text + used, c, strlen(c));
        used += strlen(c);
    }
    gguf_writer_string(w, text, used);
    free(text);
}

Test(fs_text, long_strings)
{
    static const size_t lengths[] = {0, 1, 4095, 4096, 4097, 8192, 65535, 65536, 80000, 300000};

    for (size_t i = 0; i < COUNT(lengths); i++) {
        struct gguf_writer *w = gguf_writer_open(3, false);

        gguf_writer_key(w, "k", 1, GGUF_WRITER_STRING);
        add_text(w, lengths[i]);
        check_key(w, lengths[i]);
    }
}

Test(fs_text, strings_of_all_lengths)
{
    struct gguf_writer *w = gguf_writer_open(1, false);

    gguf_writer_add_array(w, "k", GGUF_WRITER_STRING, 1500);
    for (size_t i = 0; i < 1500; i++)
        add_text(w, i % 3 ? i % 7 : i);
    check_key(w, 80000);
}

Test(fs_text, invalid_utf8_across_parts)
{
    /* Each byte takes six in the JSON, the maximum. */
    static char bytes[100000];
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct gguf_model *model;
    struct fs_tree *tree;
    struct tree_file file;

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i % 3 ? 0x96 : i % 2 ? 0xe2 : 0);
    gguf_writer_key(w, "k", 1, GGUF_WRITER_STRING);
    gguf_writer_string(w, bytes, sizeof bytes);
    model = model_file_make(w);
    tree = tree_file_make_tree(model);
    file = tree_file_read(tree, "metadata/k.json");
    /* NUL and two stray bytes, then a character, repeated. */
    cr_expect_eq(strncmp(file.bytes, "\"\\u0000\\udc96\\udc96\xe2\x96\x96\\u0000", 28), 0, "%.40s",
                 file.bytes);
    cr_expect_eq(file.size_bytes, 3u + 16667 * 18 + 16666 * 3 + 6);
    free(file.bytes);
    fs_tree_free(tree);
    gguf_close(model);
}

/* Add arrays nested `depth` deep, with numbers or strings in the innermost. */
static void add_nested(struct gguf_writer *w, unsigned depth, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (depth == 1 && i % 2) {
            gguf_writer_array(w, GGUF_WRITER_STRING, i);
            for (unsigned j = 0; j < i; j++)
                add_text(w, 60 * (size_t)i);
        } else if (depth == 1) {
            gguf_writer_array(w, GGUF_WRITER_U16, i);
            for (unsigned j = 0; j < i; j++)
                gguf_writer_u16(w, (uint16_t)(j * 777));
        } else {
            gguf_writer_array(w, GGUF_WRITER_ARRAY, n);
            add_nested(w, depth - 1, n);
        }
    }
}

Test(fs_text, arrays_in_arrays)
{
    for (size_t i = 0; i < MODEL_N_ENCODINGS; i++) {
        const struct model_encoding *e = &model_encodings[i];
        struct gguf_writer *w = gguf_writer_open(e->version, e->big_endian);

        gguf_writer_add_array(w, "k", GGUF_WRITER_ARRAY, 3);
        add_nested(w, GGUF_MAX_ARRAY_DEPTH - 1, 3);
        check_key(w, 40000);

        w = gguf_writer_open(e->version, e->big_endian);
        gguf_writer_add_array(w, "k", GGUF_WRITER_ARRAY, 40);
        add_nested(w, 1, 40);
        check_key(w, 80000);
    }
}

/* Add an array of numbers of a type: its limits, and numbers of every length. */
static void add_numbers(struct gguf_writer *w, enum gguf_value_type type, uint64_t n)
{
    const unsigned width_bytes = gguf_value_type_bytes(type);
    uint64_t state = type;

    gguf_writer_add_array(w, "k", (uint32_t)type, n);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t random = model_file_random(&state);
        uint64_t number = random >> (i % 65 == 64 ? 63 : i % 65);

        if (i % 7 == 0)
            number = ~number;
        if (type == GGUF_BOOL)
            number &= 1;
        if (width_bytes == 1)
            gguf_writer_u8(w, (uint8_t)number);
        else if (width_bytes == 2)
            gguf_writer_u16(w, (uint16_t)number);
        else if (width_bytes == 4)
            gguf_writer_u32(w, (uint32_t)number);
        else
            gguf_writer_u64(w, number);
    }
}

Test(fs_text, arrays_of_every_number_type)
{
    for (int big_endian = 0; big_endian < 2; big_endian++) {
        for (unsigned type = 0; type < GGUF_N_VALUE_TYPES; type++) {
            static const uint64_t lengths[] = {0, 1, 2, 255, 256, 257, 9000};

            if (gguf_value_type_bytes(type) == 0 || type == GGUF_FLOAT32 || type == GGUF_FLOAT64)
                continue;
            for (size_t i = 0; i < COUNT(lengths); i++) {
                struct gguf_writer *w = gguf_writer_open(3, big_endian);

                add_numbers(w, type, lengths[i]);
                check_key(w, lengths[i]);
            }
        }
    }
}

static bool is_seventh(void *n_calls)
{
    return ++*(int *)n_calls == 7;
}

static bool always_stop(void *user)
{
    return true;
}

/* Counting does not write the numbers: it must come to the same length. */
Test(fs_text, integers_are_counted_as_they_are_written)
{
    static const struct {
        enum gguf_value_type type;
        unsigned bytes;
    } types[] = {{GGUF_UINT8, 1}, {GGUF_UINT16, 2}, {GGUF_UINT32, 4}, {GGUF_UINT64, 8},
                 {GGUF_INT8, 1},  {GGUF_INT16, 2},  {GGUF_INT32, 4},  {GGUF_INT64, 8}};
    uint64_t numbers[64] = {0, 9, UINT64_MAX, INT64_MAX, UINT64_C(9999999999999999999)};
    static uint8_t many[1 << 17];
    struct fs_sink stopped = {.is_stopped = always_stop};
    struct gguf_value value = {.type = GGUF_ARRAY};

    for (uint64_t i = 5, power = 1; i + 1 < 43; power *= 10) {
        numbers[i++] = power;
        numbers[i++] = power - 1;
    }
    for (unsigned i = 0; i < 2 * sizeof types / sizeof *types; i++) {
        static char text[4096];
        struct fs_sink counter = fs_sink_that_counts(), writer = {.to = sizeof text, .out = text};

        value.array = (struct gguf_array){.element_type = types[i / 2].type,
                                          .n_elements = sizeof numbers / types[i / 2].bytes,
                                          .data = (const uint8_t *)numbers,
                                          .size_bytes = sizeof numbers,
                                          .encoding = {i % 2 == 1, 8}};
        fs_json_value(&counter, &value);
        fs_json_value(&writer, &value);
        cr_assert_eq(counter.position, writer.position, "type %u", i);
        cr_assert_lt(writer.position, sizeof text);
    }
    value.array = (struct gguf_array){GGUF_UINT8, sizeof many, many, sizeof many, {false, 8}};
    fs_json_value(&stopped, &value);
    cr_assert_eq(stopped.error, -EINTR);
}

Test(fs_text, an_interrupt_cancels_it)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    int n_calls = 0;
    const struct fs_interrupt interrupt = {.check = is_seventh, .user = &n_calls};
    struct gguf_model *model;
    struct fs_tree *tree;
    uint64_t size_bytes;
    fs_node_index node;

    add_numbers(w, GGUF_UINT64, 60000); /* about a megabyte of JSON */
    model = model_file_make(w);
    tree = tree_file_make_tree(model);
    node = tree_file_find(tree, "metadata.json");
    cr_expect_eq(fs_tree_size(tree, node, &interrupt, &size_bytes), -EINTR);
    cr_expect_eq(n_calls, 7);
    cr_expect_eq(fs_tree_size(tree, node, &interrupt, &size_bytes), 0);
    cr_expect_geq(n_calls, 7 + 8); /* every 64 KiB */
    cr_expect_gt(size_bytes, 500000u);
    fs_tree_free(tree);
    gguf_close(model);
}

/* Values come from a copy of the header. The caller frees the text, which is NUL-terminated. */
static char *text_of_first_key(const struct gguf_model *model)
{
    uint64_t size_bytes;
    char *text;

    cr_assert_eq(fs_text_make(fs_value_json_write, NULL, model->keys, NULL, &text, &size_bytes), 0);
    text = realloc(text, size_bytes + 1);
    cr_assert_not_null(text);
    text[size_bytes] = '\0';
    return text;
}

Test(fs_text, values_survive_a_change_of_the_file)
{
    /* Changes to a bool, to an element type and to a length. */
    static const struct {
        long at; /* from the start of the value */
        unsigned char before, after;
    } changes[] = {
        {4 + 8 + 4 + 8 + 1, 0, 7},    /* the second bool */
        {4 + 8 + 4 + 8, 1, 0},        /* true becomes false, which is longer */
        {4 + 8 + 4 + 8 + 3, 8, 9},    /* the strings become arrays */
        {4 + 8 + 4 + 8 + 3 + 4, 1, 2} /* more strings than there are */
    };

    static const char expected[] = "[[true,false,true],[\"text\"]]\n";

    for (size_t i = 0; i < COUNT(changes); i++) {
        struct gguf_writer *w = gguf_writer_open(3, false);
        struct gguf_report report = {0};
        char *before, *later;
        struct model_bytes bytes;
        struct gguf_model *model;
        int descriptor;

        gguf_writer_add_array(w, "k", GGUF_WRITER_ARRAY, 2);
        gguf_writer_array(w, GGUF_WRITER_BOOL, 3);
        gguf_writer_bool(w, true);
        gguf_writer_bool(w, false);
        gguf_writer_bool(w, true);
        gguf_writer_array(w, GGUF_WRITER_STRING, 1);
        gguf_writer_string(w, "text", 4);
        bytes = model_file_finish(w);
        bytes.size_bytes = 24 + 13 + 12 + 12 + 3 + 12 + 12;
        descriptor = model_file_create(bytes.data, bytes.size_bytes);
        cr_assert_eq(model_file_open_descriptor(descriptor, &model, &report), 0, "%s",
                     report.first_error.message);
        before = text_of_first_key(model);
        cr_assert_str_eq(before, expected);

        cr_assert_eq(bytes.data[37 + changes[i].at], changes[i].before);
        cr_assert_eq(pwrite(descriptor, &changes[i].after, 1, 37 + changes[i].at), 1);
        later = text_of_first_key(model);
        cr_expect_str_eq(later, expected, "change %zu", i);
        free(before);
        free(later);
        gguf_close(model);
        close(descriptor);
        free(bytes.data);
    }
}

Test(fs_text, values_survive_deeper_nesting_in_the_file)
{
    enum { INNERMOST = 24 + 13 + 7 * 12 };
    /* The change turns twelve numbers into an array of one empty array. */
    static const unsigned char after[12] = {GGUF_WRITER_ARRAY, [4] = 1};
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct gguf_report report = {0};
    char *before, *later;
    struct model_bytes bytes;
    struct gguf_model *model;
    int descriptor;

    gguf_writer_add_array(w, "k", GGUF_WRITER_ARRAY, 1);
    for (int depth = 2; depth < GGUF_MAX_ARRAY_DEPTH; depth++)
        gguf_writer_array(w, GGUF_WRITER_ARRAY, 1);
    gguf_writer_array(w, GGUF_WRITER_U8, 12);
    gguf_writer_raw(w, "\0\0\0\0\0\0\0\0\0\0\0\0", 12);
    bytes = model_file_finish(w);
    cr_assert_eq(bytes.data[INNERMOST + 4], 12);
    descriptor = model_file_create(bytes.data, bytes.size_bytes);
    cr_assert_eq(model_file_open_descriptor(descriptor, &model, &report), 0);
    before = text_of_first_key(model);
    cr_assert_eq(strlen(before), 2 * GGUF_MAX_ARRAY_DEPTH + 2 * 12);

    cr_assert_eq(pwrite(descriptor, after, sizeof after, INNERMOST), (ssize_t)sizeof after);
    later = text_of_first_key(model);
    cr_expect_str_eq(before, later);
    free(before);
    free(later);
    gguf_close(model);
    close(descriptor);
    free(bytes.data);
}

/* ---- how often and how much is written ---- */

struct counted {
    unsigned n_calls;
    uint64_t n_bytes;
};

static void write_counted(const struct fs_tree *tree, const void *subject, struct fs_sink *sink)
{
    struct counted *counted = (struct counted *)(uintptr_t)subject;

    counted->n_calls++;
    for (uint64_t i = 0; i < counted->n_bytes; i++)
        fs_sink_write(sink, (char[]){(char)('a' + i % 26)}, 1);
}

Test(fs_text, it_is_written_once_for_all_reads)
{
    struct gguf_model *model = model_file_make(gguf_writer_open(3, false));
    struct counted counted = {.n_bytes = 300000};
    struct fs_image image;
    char out[1000];

    fs_image_begin(&image, model);
    cr_assert_eq(fs_image_add_text(&image, write_counted, NULL, &counted, NULL), 0);
    for (uint64_t offset = 0; offset < counted.n_bytes; offset += sizeof out) {
        cr_assert_eq(fs_image_read(&image, offset, sizeof out, out), sizeof out);
        for (size_t i = 0; i < sizeof out; i++)
            cr_assert_eq(out[i], (char)('a' + (offset + i) % 26));
    }
    cr_expect_eq(counted.n_calls, 1);
    fs_image_free(&image);
    gguf_close(model);
}

Test(fs_text, the_longest_and_one_byte_more)
{
    struct counted counted = {.n_bytes = FS_MAX_TEXT_BYTES};
    uint64_t size_bytes;
    char *text;

    cr_assert_eq(fs_text_make(write_counted, NULL, &counted, NULL, &text, &size_bytes), 0);
    cr_expect_eq(size_bytes, FS_MAX_TEXT_BYTES);
    cr_expect_eq(text[size_bytes - 1], (char)('a' + (size_bytes - 1) % 26));
    free(text);
    counted.n_bytes++;
    cr_expect_eq(fs_text_make(write_counted, NULL, &counted, NULL, &text, &size_bytes), -EFBIG);
    cr_expect_null(text);
    cr_expect_eq(fs_text_size(write_counted, NULL, &counted, NULL, &size_bytes), 0);
    cr_expect_eq(size_bytes, FS_MAX_TEXT_BYTES + 1);
}
