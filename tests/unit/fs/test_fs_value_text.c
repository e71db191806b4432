/* The JSON of values that are longer than a piece: read back, and in any order of the pieces. */
#include <criterion/criterion.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/tree/value_cache.h"
#include "tests/unit/gguf/model_file.h"
#include "tests/unit/fs/tree_file.h"

TestSuite(fs_value_text, .init = model_file_begin_test);

/* Reads an element of an array, which may be an array, and compares it with what cJSON read. */
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

/* Writes the pieces from the last to the first, and compares them with the text. */
static void check_pieces(const struct gguf_value *value, const struct tree_file *file)
{
    struct fs_text text = {.data = malloc(FS_PIECE_BYTES + 8), .capacity = FS_PIECE_BYTES + 8};
    struct fs_value_text *pieces;
    size_t end = file->size_bytes - 1; /* before the newline */

    cr_assert_not_null(text.data);
    cr_assert_eq(fs_value_text_make(value, FS_AS_JSON, &pieces), 0);
    cr_assert_gt(pieces->n_pieces, 0u);
    for (size_t i = pieces->n_pieces; i-- > 0;) {
        const size_t length = pieces->pieces[i].length;

        cr_assert_leq(length, (size_t)FS_PIECE_BYTES);
        cr_assert_gt(length, 0u);
        cr_assert_leq(length, end);
        text.length = 8; /* something is there already */
        cr_assert_eq(fs_value_piece_write(&pieces->pieces[i], &text), 0);
        cr_assert_eq(text.length, 8 + length);
        end -= length;
        cr_assert_eq(memcmp(text.data + 8, file->bytes + end, length), 0);
    }
    cr_assert_eq(end, 0u);
    fs_value_text_free(pieces);
    free(text.data);
}

/* Ends the writer, whose first key is "k", and checks that key's file. */
static void check_key(struct gguf_writer *w, size_t at_least_bytes)
{
    struct gguf_model *model = model_file_make(w);
    struct fs_tree *tree = tree_file_make_tree(model);
    struct tree_file file = tree_file_read(tree, "metadata/k.json");
    cJSON *json;

    cr_expect_geq(file.size_bytes, at_least_bytes);
    check_pieces(&model->keys[0].value, &file);
    json = tree_file_parse(&file);
    compare(&model->keys[0].value, json);
    cJSON_Delete(json);
    free(file.bytes);
    fs_tree_free(tree);
    gguf_close(model);
}

Test(fs_value_text, numbers)
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

/* `length` bytes of whole characters of all widths, none of which is NUL. */
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

Test(fs_value_text, a_string_longer_than_a_piece)
{
    static const size_t lengths[] = {0, 1, 1023, 1024, 1025, 32767, 32768, 40960, 80000};

    for (size_t i = 0; i < COUNT(lengths); i++) {
        struct gguf_writer *w = gguf_writer_open(3, false);

        gguf_writer_key(w, "k", 1, GGUF_WRITER_STRING);
        add_text(w, lengths[i]);
        check_key(w, lengths[i]);
    }
}

Test(fs_value_text, strings_of_all_lengths)
{
    struct gguf_writer *w = gguf_writer_open(1, false);

    gguf_writer_add_array(w, "k", GGUF_WRITER_STRING, 1500);
    for (size_t i = 0; i < 1500; i++)
        add_text(w, i % 3 ? i % 7 : i);
    check_key(w, 80000);
}

Test(fs_value_text, bytes_that_are_no_characters_over_the_seams)
{
    /* Of six bytes in the text for each byte, so that pieces are as long as they can be. */
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
    check_pieces(&model->keys[0].value, &file);
    /* NUL and two strays, then a character, again and again. */
    cr_expect_eq(strncmp(file.bytes, "\"\\u0000\\udc96\\udc96\xe2\x96\x96\\u0000", 28), 0, "%.40s",
                 file.bytes);
    cr_expect_eq(file.size_bytes, 3u + 16667 * 18 + 16666 * 3 + 6);
    free(file.bytes);
    fs_tree_free(tree);
    gguf_close(model);
}

/* An array with arrays of `depth` levels, numbers and texts in the innermost. */
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

Test(fs_value_text, arrays_in_arrays)
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

Test(fs_value_text, small_values_are_one_piece)
{
    struct gguf_value value = {.type = GGUF_UINT64, .u64 = UINT64_MAX};
    struct fs_value_text *text;

    cr_assert_eq(fs_value_text_make(&value, FS_AS_JSON, &text), 0);
    cr_expect_eq(text->n_pieces, 1u);
    cr_expect_eq(text->pieces[0].length, 20u);
    fs_value_text_free(text);
    fs_value_text_free(NULL);
}

Test(fs_value_text, a_text_is_made_once)
{
    struct gguf_model *model = model_file_rich_model(2);
    const struct fs_value_text *first, *again;
    struct fs_value_cache cache;

    cr_assert_eq(fs_value_cache_begin(&cache, model), 0);
    for (uint64_t i = 0; i < model->n_keys; i++) {
        cr_assert_eq(fs_value_cache_get(&cache, &model->keys[i], FS_AS_JSON, &first), 0);
        cr_assert_eq(fs_value_cache_get(&cache, &model->keys[i], FS_AS_JSON, &again), 0);
        cr_expect_eq(first, again);
    }
    fs_value_cache_free(&cache);
    gguf_close(model);
}

/* Values are read from a copy. */
Test(fs_value_text, a_value_stays_when_its_file_changes)
{
    /* A length in the array, a bool, and a depth that it did not have. */
    static const struct {
        long at; /* from the start of the value */
        unsigned char before, after;
    } changes[] = {
        {4 + 8 + 4 + 8 + 1, 0, 7},    /* the second bool */
        {4 + 8 + 4 + 8, 1, 0},        /* true becomes false, which is longer */
        {4 + 8 + 4 + 8 + 3, 8, 9},    /* the strings become arrays */
        {4 + 8 + 4 + 8 + 3 + 4, 1, 2} /* more strings than there are */
    };

    static const char expected[] = "[[true,false,true],[\"text\"]]";

    for (size_t i = 0; i < COUNT(changes); i++) {
        struct gguf_writer *w = gguf_writer_open(3, false);
        char data[FS_PIECE_BYTES];
        struct fs_text text = {.data = data, .capacity = sizeof data};
        struct gguf_report report = {0};
        struct fs_value_text *pieces;
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
        cr_assert_eq(fs_value_text_make(&model->keys[0].value, FS_AS_JSON, &pieces), 0);
        cr_assert_eq(fs_value_piece_write(&pieces->pieces[0], &text), 0);
        cr_assert_eq(text.length, strlen(expected));
        cr_assert_arr_eq(data, expected, text.length);

        cr_assert_eq(bytes.data[37 + changes[i].at], changes[i].before);
        cr_assert_eq(pwrite(descriptor, &changes[i].after, 1, 37 + changes[i].at), 1);
        text.length = 0;
        cr_expect_eq(fs_value_piece_write(&pieces->pieces[0], &text), 0);
        cr_expect_eq(text.length, strlen(expected));
        cr_expect_arr_eq(data, expected, text.length, "change %zu", i);
        fs_value_text_free(pieces);
        gguf_close(model);
        close(descriptor);
        free(bytes.data);
    }
}

Test(fs_value_text, a_value_stays_when_its_file_gets_deeper)
{
    enum { INNERMOST = 24 + 13 + 7 * 12 };
    /* Twelve numbers become one empty array. */
    static const unsigned char after[12] = {GGUF_WRITER_ARRAY, [4] = 1};
    struct gguf_writer *w = gguf_writer_open(3, false);
    static char data[FS_PIECE_BYTES];
    struct fs_text text = {.data = data, .capacity = sizeof data};
    struct gguf_report report = {0};
    struct fs_value_text *pieces;
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
    cr_assert_eq(fs_value_text_make(&model->keys[0].value, FS_AS_JSON, &pieces), 0);

    cr_assert_eq(pwrite(descriptor, after, sizeof after, INNERMOST), (ssize_t)sizeof after);
    cr_expect_eq(fs_value_piece_write(&pieces->pieces[0], &text), 0);
    cr_expect_eq(text.length, 2 * GGUF_MAX_ARRAY_DEPTH + 2 * 12 - 1);
    fs_value_text_free(pieces);
    gguf_close(model);
    close(descriptor);
    free(bytes.data);
}
