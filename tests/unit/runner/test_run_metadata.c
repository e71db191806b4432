/* What the runner reads of metadata.json, and how it says what is wrong. */
#include "contrib/runner/tree/json_file.h"
#include "contrib/runner/tree/metadata.h"
#include "tests/unit/runner/run_numbers.h"
#include "tests/unit/runner/run_tree_files.h"
#include "gguf/support/exit_status.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

/* ---- failures ---- */

Test(run_failure, is_one_line_that_a_terminal_only_shows)
{
    struct run_failure failure;

    cr_expect_eq(run_fail(&failure, -EINVAL, "a %s b", "\x1b[31m\r\n\t\x01\x7f|\xc3\xa9"), -EINVAL);
    cr_expect_str_eq(failure.text, "a ?[31m?????|\xc3\xa9 b");
    /* The commands of eight bits, as UTF-8 has them. */
    run_fail(&failure, -EINVAL, "%s",
             "\xc2\x9b"
             "31m\xc2\x80\xc2\xa0\xc2");
    cr_expect_str_eq(failure.text, "??31m??\xc2\xa0\xc2");
}

Test(run_failure, long_ones_are_cut)
{
    struct run_failure failure;
    char name[5000];

    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    cr_expect_eq(run_fail(&failure, -ENOENT, "%s", name), -ENOENT);
    cr_expect_eq(strlen(failure.text), sizeof failure.text - 1);
    cr_expect_eq(run_fail_memory(&failure), -ENOMEM);
    cr_expect_str_eq(failure.text, "out of memory");
}

Test(run_failure, exit_statuses)
{
    static const int cases[][2] = {
        {0, EX_OK},           {ENOENT, EX_NOINPUT}, {EACCES, EX_NOPERM},  {EIO, EX_IOERR},
        {ENOTCONN, EX_IOERR}, {ENOMEM, EX_OSERR},   {EINVAL, EX_DATAERR}, {ENOTSUP, EX_DATAERR},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        cr_expect_eq(gguf_exit_status(-cases[i][0]), cases[i][1], "errno %d", cases[i][0]);
}

/* ---- JSON ---- */

static int parse(const char *text, size_t length, cJSON **json)
{
    struct run_failure failure = {0};
    char *copy = numbers_alloc(length, 1); /* so that a sanitizer sees its end */
    int code;

    memcpy(copy, text, length);
    code = run_json_parse(copy, length, "some.json", json, &failure);
    free(copy);
    cr_expect_eq(*json == NULL, code < 0);
    if (code < 0)
        cr_expect_eq(strncmp(failure.text, "some.json: ", 11), 0, "%s", failure.text);
    return code;
}

static void expect_string(const char *in_json, const char *expected)
{
    char text[300];
    cJSON *json;

    snprintf(text, sizeof text, "{\"key\": \"%s\"}", in_json);
    cr_assert_eq(parse(text, strlen(text), &json), 0, "%s", in_json);
    cr_expect_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(json, "key")), expected, "%s",
                     in_json);
    cJSON_Delete(json);
    snprintf(text, sizeof text, "{\"%s\": 1}", in_json);
    cr_assert_eq(parse(text, strlen(text), &json), 0, "%s", in_json);
    cr_expect_str_eq(json->child->string, expected);
    cJSON_Delete(json);
}

Test(run_json, strings_hold_the_bytes_of_the_model)
{
    expect_string("", "");
    expect_string("plain", "plain");
    expect_string("\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t");
    expect_string("\xe2\x96\x81"
                  "a",
                  "\xe2\x96\x81"
                  "a");
    expect_string("\\u00e9\\u2581", "\xc3\xa9\xe2\x96\x81");
    /* Bytes that are not UTF-8. */
    expect_string("\\udc80\\udcff\\uDCFE", "\x80\xff\xfe");
    expect_string("a\\udce2\\udc96b", "a\xe2\x96"
                                      "b");
    /* A pair is a character, also if its second half looks like a byte. */
    expect_string("\\ud83d\\ude00", "\xf0\x9f\x98\x80");
    expect_string("\\ud800\\udc80", "\xf0\x90\x82\x80");
    expect_string("\\ud800\\udc80\\udc80", "\xf0\x90\x82\x80\x80");
    /* NUL, which would end the string. */
    expect_string("a\\u0000b", "a\xc0\x80"
                               "b");
    expect_string("\\u0000", "\xc0\x80");
    /* An escaped backslash begins no escape. */
    expect_string("\\\\udc80", "\\udc80");
    expect_string("\\\\\\udc80", "\\\x80");
    expect_string("\\\\u0000", "\\u0000");
}

Test(run_json, what_is_no_object_is_refused)
{
    static const char *const bad[] = {
        "",
        " ",
        "{",
        "}",
        "[]",
        "1",
        "\"text\"",
        "null",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\": 1,}",
        "{\"a\": 1",
        "{\"a\": \"\\",
        "{\"a\": \"\\u",
        "{\"a\": \"\\u00",
        "{\"a\": \"\\ud800\"}",
        "{\"a\": \"\\ud800\\",
        "{\"a\": \"\\ud800\\u00e9\"}",
        "{\"a\": \"\\udc7f\"}",
        "{\"a\": \"\\ude00\"}",
        "{\"a\": \"\\ud83d",
        "{\"a\": \"\\udc8",
        "{a: 1}",
        "{\"a\": 1} 2",
        "{\"a\": 1}}",
        "{\"a\": 1} {\"b\": 2}",
        "\xff",
    };
    cJSON *json;

    for (size_t i = 0; i < COUNT(bad); i++)
        cr_expect_eq(parse(bad[i], strlen(bad[i]), &json), -EINVAL, "%s", bad[i]);
    cr_expect_eq(parse("{}\0", 3, &json), -EINVAL);
    cr_assert_eq(parse(" {} \n", 5, &json), 0);
    cJSON_Delete(json);
}

Test(run_json, every_prefix_is_refused)
{
    static const char text[] =
        "{\"a\": [1, \"\\ud83d\\ude00\\udc80\\u0000\"], \"b\": {\"c\": null}}";
    cJSON *json;

    for (size_t length = 0; length < strlen(text); length++)
        cr_expect_eq(parse(text, length, &json), -EINVAL, "%zu bytes", length);
    cr_assert_eq(parse(text, strlen(text), &json), 0);
    cJSON_Delete(json);
}

Test(run_json, deep_nesting_is_refused)
{
    enum { DEPTH = 100000 };
    char *text = numbers_alloc(5 + DEPTH, 1);
    cJSON *json;

    memcpy(text, "{\"a\":", 5);
    memset(text + 5, '[', DEPTH);
    cr_expect_eq(parse(text, 5 + DEPTH, &json), -EINVAL);
    free(text);
}

/* ---- metadata ---- */

static struct run_files files;

static void begin(void)
{
    run_files_make(&files);
}

static void end(void)
{
    run_files_remove(&files);
}

TestSuite(run_metadata, .init = begin, .fini = end);

static int open_metadata(struct run_metadata **metadata, struct run_failure *failure)
{
    const int fd = open(files.path, O_RDONLY | O_DIRECTORY);
    int code;

    cr_assert_geq(fd, 0);
    code = run_metadata_open(fd, metadata, failure);
    close(fd);
    return code;
}

static struct run_metadata *metadata_of(const char *text)
{
    struct run_metadata *metadata;
    struct run_failure failure;

    run_files_metadata(&files, text);
    cr_assert_eq(open_metadata(&metadata, &failure), 0, "%s", failure.text);
    return metadata;
}

static void expect_failure(int code, const char *pattern)
{
    struct run_metadata *metadata;
    struct run_failure failure = {0};

    cr_expect_eq(open_metadata(&metadata, &failure), code);
    cr_expect_null(metadata);
    cr_expect_not_null(strstr(failure.text, pattern), "\"%s\" is not about %s", failure.text,
                       pattern);
}

Test(run_metadata, files_that_are_none)
{
    char path[100];

    snprintf(path, sizeof path, "%s/metadata.json", files.path);
    expect_failure(-ENOENT, "metadata.json: No such file");
    run_files_metadata(&files, "{");
    expect_failure(-EINVAL, "metadata.json: not valid JSON");
    run_files_metadata(&files, "[1]");
    expect_failure(-EINVAL, "metadata.json: not a JSON object");
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(mkdir(path, 0755), 0);
    expect_failure(-EISDIR, "metadata.json: ");
    cr_assert_eq(rmdir(path), 0);
    cr_assert_eq(mkfifo(path, 0644), 0); /* nobody writes to it, and nobody waits */
    expect_failure(-EINVAL, "metadata.json: ");
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(symlink("metadata.json", path), 0);
    expect_failure(-ELOOP, "metadata.json: ");
}

Test(run_metadata, keys_of_the_architecture)
{
    struct run_metadata *metadata = metadata_of(
        "{\"general.architecture\": \"llama\", \"llama.a\": 1, \"other.a\": 2, \".a\": 3,"
        " \"s\": \"text\", \"t\": true, \"f\": false}");
    struct run_failure failure;
    uint32_t value = 7;

    cr_expect_str_eq(run_metadata_architecture(metadata), "llama");
    cr_expect_eq(run_metadata_u32(metadata, ".a", 10, &value, &failure), 0);
    cr_expect_eq(value, 1u);
    cr_expect_eq(run_metadata_u32(metadata, "other.a", 10, &value, &failure), 0);
    cr_expect_eq(value, 2u);
    cr_expect_eq(run_metadata_u32(metadata, ".none", 10, &value, &failure), 0);
    cr_expect_eq(value, 2u, "what is not there leaves the default");
    cr_expect_str_eq(run_metadata_string(metadata, "s"), "text");
    cr_expect_null(run_metadata_string(metadata, "t"));
    cr_expect_null(run_metadata_string(metadata, "none"));
    cr_expect(run_metadata_is_true(metadata, "t"));
    cr_expect_not(run_metadata_is_true(metadata, "f"));
    cr_expect_not(run_metadata_is_true(metadata, "s"));
    cr_expect_not(run_metadata_is_true(metadata, "none"));
    cr_expect_null(run_metadata_find(metadata, "none"));
    cr_expect_not_null(run_metadata_find(metadata, ".a"));
    run_metadata_close(metadata);
    run_metadata_close(NULL);
}

Test(run_metadata, without_architecture)
{
    static const char *const texts[] = {"{}", "{\"general.architecture\": 3}",
                                        "{\"general.architecture\": null}"};

    for (size_t i = 0; i < COUNT(texts); i++) {
        struct run_metadata *metadata = metadata_of(texts[i]);

        cr_expect_str_eq(run_metadata_architecture(metadata), "");
        run_metadata_close(metadata);
    }
}

Test(run_metadata, names_of_architectures_may_be_long)
{
    char text[3000] = "{\"general.architecture\": \"";
    struct run_failure failure;
    struct run_metadata *metadata;
    uint32_t value = 5;

    memset(text + strlen(text), 'n', 2000);
    strcat(text, "\"}");
    metadata = metadata_of(text);
    cr_expect_eq(strlen(run_metadata_architecture(metadata)), 2000u);
    cr_expect_eq(run_metadata_u32(metadata, ".a", 10, &value, &failure), 0);
    cr_expect_eq(run_metadata_need_u32(metadata, ".a", 1, 10, &value, &failure), -ENOENT);
    run_metadata_close(metadata);
}

Test(run_metadata, whole_numbers)
{
    static const struct {
        const char *text;
        uint32_t max;
        int code;
        uint32_t value;
    } cases[] = {
        {"0", 10, 0, 0},
        {"10", 10, 0, 10},
        {"11", 10, -EINVAL, 0},
        {"-1", 10, -EINVAL, 0},
        {"1.5", 10, -EINVAL, 0},
        {"3.0", 10, 0, 3},
        {"1e1", 10, 0, 10},
        {"1e400", 10, -EINVAL, 0},
        {"true", 10, 0, 1},
        {"false", 10, 0, 0},
        {"\"1\"", 10, -EINVAL, 0},
        {"null", 10, -EINVAL, 0},
        {"{}", 10, -EINVAL, 0},
        {"[]", 10, -EINVAL, 0},
        {"[4]", 10, 0, 4},
        {"[[4]]", 10, -EINVAL, 0},
        {"[null]", 10, -EINVAL, 0},
        {"-0.0", 10, 0, 0},
        {"4294967295", UINT32_MAX, 0, UINT32_MAX},
        {"4294967296", UINT32_MAX, -EINVAL, 0},
        {"18446744073709551615", UINT32_MAX, -EINVAL, 0},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[100];
        struct run_failure failure = {0};
        struct run_metadata *metadata;
        uint32_t value = 99;

        snprintf(text, sizeof text, "{\"key\": %s}", cases[i].text);
        metadata = metadata_of(text);
        cr_expect_eq(run_metadata_u32(metadata, "key", cases[i].max, &value, &failure),
                     cases[i].code, "%s", cases[i].text);
        cr_expect_eq(value, cases[i].code == 0 ? cases[i].value : 99, "%s", cases[i].text);
        if (cases[i].code < 0)
            cr_expect_eq(strncmp(failure.text, "metadata.json: key: ", 20), 0, "%s", failure.text);
        run_metadata_close(metadata);
    }
}

Test(run_metadata, arrays_have_a_value_for_each_layer)
{
    struct run_metadata *metadata =
        metadata_of("{\"general.architecture\": \"llama\", \"llama.a\": [3, true, 2.5], \"b\": 8}");
    struct run_failure failure;
    uint32_t value = 0;
    float number = 0;

    cr_expect_eq(run_metadata_u32_at(metadata, ".a", 0, 10, &value, &failure), 0);
    cr_expect_eq(value, 3u);
    cr_expect_eq(run_metadata_u32_at(metadata, ".a", 1, 10, &value, &failure), 0);
    cr_expect_eq(value, 1u);
    cr_expect_eq(run_metadata_u32_at(metadata, ".a", 2, 10, &value, &failure), -EINVAL);
    cr_expect_eq(run_metadata_float_at(metadata, ".a", 2, &number, &failure), 0);
    cr_expect_eq(number, 2.5f);
    cr_expect_eq(run_metadata_u32_at(metadata, ".a", 3, 10, &value, &failure), -EINVAL);
    cr_expect_str_eq(failure.text, "metadata.json: llama.a: 3 values, layer 3 has none");
    cr_expect_eq(run_metadata_u32_at(metadata, ".a", SIZE_MAX, 10, &value, &failure), -EINVAL);
    cr_expect_eq(run_metadata_u32_at(metadata, "b", 1000, 10, &value, &failure), 0);
    cr_expect_eq(value, 8u, "one value is for all layers");
    run_metadata_close(metadata);
}

Test(run_metadata, floats)
{
    struct run_metadata *metadata = metadata_of(
        "{\"a\": 1e-5, \"b\": 1e39, \"c\": -3, \"d\": true, \"e\": \"1\", \"f\": 1e-60}");
    struct run_failure failure;
    float value = 7;

    cr_expect_eq(run_metadata_float(metadata, "none", &value, &failure), 0);
    cr_expect_eq(value, 7);
    cr_expect_eq(run_metadata_float(metadata, "a", &value, &failure), 0);
    cr_expect_eq(value, 1e-5f);
    cr_expect_eq(run_metadata_float(metadata, "b", &value, &failure), -EINVAL);
    cr_expect_eq(run_metadata_float(metadata, "c", &value, &failure), 0);
    cr_expect_eq(value, -3);
    cr_expect_eq(run_metadata_float(metadata, "d", &value, &failure), 0);
    cr_expect_eq(value, 1);
    cr_expect_eq(run_metadata_float(metadata, "e", &value, &failure), -EINVAL);
    cr_expect_eq(run_metadata_float(metadata, "f", &value, &failure), 0);
    cr_expect_eq(value, 0);
    run_metadata_close(metadata);
}

Test(run_metadata, needed_keys_have_a_least_value)
{
    struct run_metadata *metadata = metadata_of("{\"a\": 1, \"b\": 0}");
    struct run_failure failure;
    uint32_t value = 7;

    cr_expect_eq(run_metadata_need_u32(metadata, "a", 1, 10, &value, &failure), 0);
    cr_expect_eq(value, 1u);
    cr_expect_eq(run_metadata_need_u32(metadata, "b", 1, 10, &value, &failure), -EINVAL);
    cr_expect_str_eq(failure.text, "metadata.json: b: 0 is below 1");
    cr_expect_eq(run_metadata_need_u32(metadata, "none", 1, 10, &value, &failure), -ENOENT);
    cr_expect_str_eq(failure.text, "metadata.json: no none");
    run_metadata_close(metadata);
}

Test(run_metadata, the_first_of_two_equal_keys_counts)
{
    struct run_metadata *metadata = metadata_of("{\"b\": 0, \"a\": 1, \"a\": 2, \"a\": 3}");
    struct run_failure failure;
    uint32_t value = 7;

    cr_expect_eq(run_metadata_u32(metadata, "a", 10, &value, &failure), 0);
    cr_expect_eq(value, 1u);
    run_metadata_close(metadata);
}
