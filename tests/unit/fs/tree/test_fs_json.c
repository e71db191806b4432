/*
 * Strings, scalars and tensor infos as JSON. Strings are compared with an independent encoder,
 * which follows the table of well-formed UTF-8 in the Unicode standard (table 3-7).
 */
#include <criterion/criterion.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/tree/output/json.h"
#include "fs/tree/views/view_files.h"
#include "fs/tree/tree.h"
#include "tests/unit/gguf/model_file.h"

TestSuite(fs_json, .init = model_file_begin_test);

/* Return a sink with room for the JSON of a string of `length` bytes. */
static struct fs_sink sink_for(size_t length)
{
    struct fs_sink sink = {.to = 6 * length + 2, .out = malloc(6 * length + 2)};

    cr_assert_not_null(sink.out);
    return sink;
}

static bool is_between(unsigned byte, unsigned low, unsigned high)
{
    return byte >= low && byte <= high;
}

/* Return the length of the UTF-8 character at `bytes`, or 0 if they are not UTF-8. */
static size_t character_bytes(const unsigned char *bytes, size_t length)
{
    /* Range of the first byte, range of the second byte, length of the character. */
    static const struct {
        unsigned char first, last, low, high;
        size_t n_bytes;
    } rows[] = {
        {0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        if (!is_between(bytes[0], rows[i].first, rows[i].last))
            continue;
        if (rows[i].n_bytes > length)
            return 0;
        if (rows[i].n_bytes > 1 && !is_between(bytes[1], rows[i].low, rows[i].high))
            return 0;
        for (size_t j = 2; j < rows[i].n_bytes; j++) {
            if (!is_between(bytes[j], 0x80, 0xbf))
                return 0;
        }
        return rows[i].n_bytes;
    }
    return 0;
}

/* Write the expected JSON without quotes. Returns its length. */
static size_t expect_string(const char *string, size_t length, char *out)
{
    static const char plain[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const unsigned char *bytes = (const unsigned char *)string;
    char *to = out;

    for (size_t i = 0; i < length;) {
        const size_t n = character_bytes(bytes + i, length - i);
        const char *escape = bytes[i] ? strchr(plain, bytes[i]) : NULL;

        if (n == 0) {
            to += sprintf(to, "\\udc%02x", bytes[i++]);
            continue;
        }
        if (escape)
            to += sprintf(to, "\\%c", letters[escape - plain]);
        else if (bytes[i] < 0x20)
            to += sprintf(to, "\\u%04x", bytes[i]);
        else
            to = (char *)memcpy(to, bytes + i, n) + n;
        i += n;
    }
    return (size_t)(to - out);
}

/* Write the string to an array, to a buffer that grows and to nowhere, and compare. */
static void check_string(const char *string, size_t length)
{
    char *expected = malloc(6 * length + 3);
    struct fs_sink text = sink_for(length), grown = fs_sink_that_grows(UINT64_MAX);
    struct fs_sink counter = fs_sink_that_counts();
    const size_t n = expect_string(string, length, expected + 1) + 2;

    expected[0] = expected[n - 1] = '"';
    fs_json_string(&text, (struct gguf_string){string, length});
    cr_assert_eq(text.position, n);
    cr_assert_arr_eq(text.out, expected, n);
    fs_json_string(&grown, (struct gguf_string){string, length});
    cr_assert_eq(grown.position, n);
    cr_assert_arr_eq(grown.out, expected, n);
    fs_json_string(&counter, (struct gguf_string){string, length});
    cr_assert_eq(counter.position, n);
    free(expected);
    free(text.out);
    free(grown.out);
}

Test(fs_json, examples_of_strings)
{
    static const struct {
        const char *string;
        size_t length;
        const char *json;
    } cases[] = {
        {"", 0, "\"\""},
        {"llama", 5, "\"llama\""},
        {"a \"b\" \\ /", 9, "\"a \\\"b\\\" \\\\ /\""},
        {"\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\""},
        {"\0a\0", 3, "\"\\u0000a\\u0000\""},
        {"\x01\x1f\x7f", 3, "\"\\u0001\\u001f\x7f\""},
        {"\xc3\xa9\xe2\x96\x81\xf0\x9f\x8c\x8d", 9, "\"\xc3\xa9\xe2\x96\x81\xf0\x9f\x8c\x8d\""},
        {"\xff", 1, "\"\\udcff\""},
        {"\x80 \xbf", 3, "\"\\udc80 \\udcbf\""},
        {"\xc0\x80", 2, "\"\\udcc0\\udc80\""},            /* NUL, overlong */
        {"\xc1\xbf", 2, "\"\\udcc1\\udcbf\""},            /* DEL, overlong */
        {"\xe0\x80\xaf", 3, "\"\\udce0\\udc80\\udcaf\""}, /* '/', overlong */
        {"\xf0\x80\x80\xaf", 4, "\"\\udcf0\\udc80\\udc80\\udcaf\""},
        {"\xed\xa0\x80", 3, "\"\\udced\\udca0\\udc80\""}, /* first surrogate */
        {"\xed\xbf\xbf", 3, "\"\\udced\\udcbf\\udcbf\""}, /* last surrogate */
        {"\xed\x9f\xbf\xee\x80\x80", 6, "\"\xed\x9f\xbf\xee\x80\x80\""},
        {"\xf4\x8f\xbf\xbf", 4, "\"\xf4\x8f\xbf\xbf\""}, /* last character, U+10FFFF */
        {"\xf4\x90\x80\x80", 4, "\"\\udcf4\\udc90\\udc80\\udc80\""},
        {"\xf5\x80\x80\x80", 4, "\"\\udcf5\\udc80\\udc80\\udc80\""},
        {"\xe2\x96", 2, "\"\\udce2\\udc96\""},
        {"\xe2\x96"
         "A",
         3, "\"\\udce2\\udc96A\""},
        {"\xf0\x9f\x8c\xf0\x9f\x8c\x8d", 7, "\"\\udcf0\\udc9f\\udc8c\xf0\x9f\x8c\x8d\""},
        {"\xef\xbf\xbd\xef\xbb\xbf", 6, "\"\xef\xbf\xbd\xef\xbb\xbf\""},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fs_sink text = sink_for(cases[i].length);

        fs_json_string(&text, (struct gguf_string){cases[i].string, cases[i].length});
        cr_expect_eq(text.position, strlen(cases[i].json), "%zu", i);
        cr_expect_arr_eq(text.out, cases[i].json, text.position, "%zu", i);
        free(text.out);
        check_string(cases[i].string, cases[i].length);
    }
}

Test(fs_json, every_string_of_two_bytes)
{

    for (unsigned i = 0; i < 65536; i++)
        check_string((const char[]){(char)(i >> 8), (char)i}, 2);
}

Test(fs_json, random_strings_in_random_parts)
{
    static const char *const pieces[] = {
        "a",
        "\"",
        "\\",
        "\n",
        "\x1f",
        "\x7f",
        "\xc3\xa9",
        "\xe2\x96\x81",
        "\xf0\x9f\x8c\x8d",
        "\xff",
        "\x80",
        "\xe2",
        "\xe2\x96",
        "\xf0\x9f",
        "\xf0\x9f\x8c",
        "\xed\xa0\x80",
        "\xc0\xaf",
        "\xed",
        "\xf4\x90\x80\x80",
        "\xf4\x8f\xbf\xbf",
    };
    uint64_t state = 3;

    for (int i = 0; i < 20000; i++) {
        char string[128];
        size_t length = 0;

        for (uint64_t n = model_file_random(&state) % 30; n > 0; n--) {
            const size_t which = model_file_random(&state) % (COUNT(pieces) + 1);

            if (which == COUNT(pieces)) {
                string[length++] = '\0';
            } else {
                memcpy(string + length, pieces[which], strlen(pieces[which]));
                length += strlen(pieces[which]);
            }
        }
        check_string(string, length);
    }
}

Test(fs_json, characters_at_every_offset_of_a_long_string)
{
    /* Longer than the parts in which strings are written, so that characters cross their ends. */
    enum { BYTES = 1024 + 16 };
    static const char *const characters[] = {"\xf0\x9f\x8c\x8d", "\xf0\x9f\x8c", "\xe2\x96",
                                             "\xed\xa0\x80", "\xf0\x80"};
    char string[BYTES];

    for (size_t i = 0; i < COUNT(characters); i++) {
        for (size_t at = 1012; at + strlen(characters[i]) <= BYTES; at++) {
            memset(string, 'x', sizeof string);
            memcpy(string + at, characters[i], strlen(characters[i]));
            check_string(string, sizeof string);
            check_string(string, at + strlen(characters[i]));
        }
    }
}

Test(fs_json, longest_escapes_fit)
{
    static const unsigned char bytes[] = {0, 1, '"', 0xff, 0xe2, 'x'};
    static char string[5000];

    for (size_t i = 0; i < COUNT(bytes); i++) {
        memset(string, bytes[i], sizeof string);
        check_string(string, sizeof string);
        check_string(string, 1024);
        check_string(string, 1025);
    }
}

Test(fs_json, scalars)
{
    static const struct {
        struct gguf_value value;
        const char *json;
    } cases[] = {
        {{.type = GGUF_UINT8, .u64 = 255}, "255"},
        {{.type = GGUF_UINT16, .u64 = 65535}, "65535"},
        {{.type = GGUF_UINT32, .u64 = UINT32_MAX}, "4294967295"},
        {{.type = GGUF_UINT64, .u64 = UINT64_MAX}, "18446744073709551615"},
        {{.type = GGUF_UINT64, .u64 = 9007199254740993}, "9007199254740993"},
        {{.type = GGUF_INT8, .i64 = -128}, "-128"},
        {{.type = GGUF_INT16, .i64 = -32768}, "-32768"},
        {{.type = GGUF_INT32, .i64 = INT32_MIN}, "-2147483648"},
        {{.type = GGUF_INT64, .i64 = INT64_MIN}, "-9223372036854775808"},
        {{.type = GGUF_INT64, .i64 = 0}, "0"},
        {{.type = GGUF_BOOL, .boolean = true}, "true"},
        {{.type = GGUF_BOOL, .boolean = false}, "false"},
        {{.type = GGUF_FLOAT32, .f32 = 0.1f}, "0.1"},
        {{.type = GGUF_FLOAT32, .f32 = -3.4028235e38f}, "-3.4028235e+38"},
        {{.type = GGUF_FLOAT64, .f64 = 10000}, "10000.0"},
        {{.type = GGUF_FLOAT64, .f64 = -2.2250738585072014e-308}, "-2.2250738585072014e-308"},
        {{.type = GGUF_FLOAT32, .f32 = INFINITY}, "null"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fs_sink text = sink_for(40);

        fs_json_scalar(&text, &cases[i].value);
        cr_expect_eq(text.position, strlen(cases[i].json), "%s", cases[i].json);
        cr_expect_arr_eq(text.out, cases[i].json, text.position, "%s", cases[i].json);
        free(text.out);
    }
}

/* Return the info of a tensor without its newline. The caller frees it. */
static char *info_of(const struct gguf_model *model, const struct gguf_tensor *tensor)
{
    const struct fs_facts facts = {0};
    const struct fs_tree tree = {.model = model, .facts = &facts, .table = &fs_views};
    uint64_t size_bytes, counted_bytes;
    char *text;

    cr_assert_eq(fs_text_make(fs_tensor_info_write, &tree, tensor, NULL, &text, &size_bytes), 0);
    cr_assert_eq(fs_text_size(fs_tensor_info_write, &tree, tensor, NULL, &counted_bytes), 0);
    cr_assert_eq(size_bytes, counted_bytes);
    cr_assert_eq(text[size_bytes - 1], '\n');
    text[size_bytes - 1] = '\0';
    return text;
}

Test(fs_json, info_of_a_tensor)
{
    struct gguf_file file = {
        .source = {.kind = &gguf_mapped_file, .path = (char *)(uintptr_t) "/models/a \"b\".gguf"}};
    const struct gguf_model model = {.files = &file, .n_files = 1};
    const struct gguf_tensor tensor = {.name = {"a/\xff", 3},
                                       .type_id = 12,
                                       .type = dequant_type_by_id(12),
                                       .n_dims = 2,
                                       .ne = {512, 3, 1, 1},
                                       .n_elements = 1536,
                                       .size_bytes = 864,
                                       .file_offset = 9007199254740993};
    char *info = info_of(&model, &tensor);

    cr_expect_str_eq(info,
                     "{\"name\":\"a/\\udcff\",\"path\":\"tensors/"
                     "a%2F\\udcff\",\"type\":\"Q4_K\",\"ggml_type\":12,\"shape\":[3,512],"
                     "\"ne\":[512,3],\"n_elements\":1536,\"block_size\":256,\"type_size\":144,"
                     "\"n_bytes\":864,\"file\":\"a \\\"b\\\".gguf\","
                     "\"offset\":9007199254740993}");
    free(info);
}

Test(fs_json, info_of_a_tensor_with_a_row_layout)
{
    struct gguf_file file = {
        .source = {.kind = &gguf_mapped_file, .path = (char *)(uintptr_t) "/m"}};
    const struct gguf_model model = {.files = &file, .n_files = 1};
    const struct gguf_tensor tensor = {.name = {"t", 1},
                                       .type_id = 344,
                                       .type = dequant_type_by_id(344),
                                       .n_dims = 2,
                                       .ne = {256, 4, 1, 1},
                                       .n_elements = 1024,
                                       .size_bytes = 560};
    char *info = info_of(&model, &tensor);

    cr_expect_not_null(strstr(info, "\"type\":\"IQ4_KS_R4\",\"ggml_type\":344,"), "%s", info);
    cr_expect_not_null(strstr(info, "\"block_size\":256,\"type_size\":136,\"row_header_bytes\":4,"
                                    "\"interleave_rows\":4,\"n_bytes\":560,"),
                       "%s", info);
    free(info);
}

Test(fs_json, info_of_a_big_endian_tensor)
{
    struct gguf_file file = {
        .source = {.kind = &gguf_mapped_file, .path = (char *)(uintptr_t) "/m"}};
    const struct gguf_model model = {.files = &file, .n_files = 1};
    const struct gguf_tensor tensor = {.name = {"t", 1},
                                       .type = dequant_type_by_id(0),
                                       .big_endian = true,
                                       .n_dims = 1,
                                       .ne = {4, 1, 1, 1},
                                       .n_elements = 4,
                                       .size_bytes = 16};
    char *info = info_of(&model, &tensor);

    cr_expect_not_null(
        strstr(info, "\"type\":\"F32\",\"ggml_type\":0,\"byte_order\":\"big\",\"shape\":[4],"),
        "%s", info);
    free(info);
}

Test(fs_json, info_of_an_unknown_type_without_dimensions)
{
    struct gguf_file file = {
        .source = {.kind = &gguf_mapped_file, .path = (char *)(uintptr_t) "/m"}};
    const struct gguf_model model = {.files = &file, .n_files = 1};
    const struct gguf_tensor tensor = {.name = {"", 0},
                                       .type_id = UINT32_MAX,
                                       .ne = {1, 1, 1, 1},
                                       .n_elements = 1,
                                       .extent_bytes = 96,
                                       .file_offset = UINT64_MAX};
    char *info = info_of(&model, &tensor);

    cr_expect_str_eq(
        info,
        "{\"name\":\"\",\"path\":\"tensors/%\",\"type\":null,\"ggml_type\":4294967295,\"shape\":[],"
        "\"ne\":[],\"n_elements\":1,\"block_size\":null,\"type_size\":null,"
        "\"n_bytes\":null,\"max_bytes\":96,\"file\":\"m\",\"offset\":18446744073709551615}");
    free(info);
}

Test(fs_json, info_with_the_longest_name)
{
    static char name[65535], path[4096];
    struct gguf_file file = {.source = {.kind = &gguf_mapped_file, .path = path}};
    const struct gguf_model model = {.files = &file, .n_files = 1};
    struct gguf_tensor tensor = {.name = {name, sizeof name},
                                 .type_id = 27,
                                 .type = dequant_type_by_id(27),
                                 .n_dims = 8,
                                 .n_elements = UINT64_MAX,
                                 .size_bytes = UINT64_MAX,
                                 .file_offset = UINT64_MAX};

    memset(path, '\x01', sizeof path - 1);
    memset(tensor.ne, 0xff, sizeof tensor.ne);
    for (int byte = 0; byte < 256; byte += 15) {
        char *info, *json;

        memset(name, byte, sizeof name);
        info = info_of(&model, &tensor);
        /* cJSON refuses lone surrogates. */
        for (json = info; *json != '\0'; json++) {
            if (strncmp(json, "\\udc", 4) == 0)
                memcpy(json, "\\u00", 4);
        }
        cJSON *object = cJSON_Parse(info);
        cr_assert_not_null(object, "byte %d", byte);
        cr_expect_eq(cJSON_GetArraySize(cJSON_GetObjectItem(object, "shape")), 8);
        cJSON_Delete(object);
        free(info);
    }
}
