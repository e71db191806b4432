/* metadata.json as a file: damage, limits, keys of any bytes, values that cannot be read. */
#include "contrib/runner/tree/metadata.h"
#include "gguf/support/limits.h"
#include "tests/unit/runner/run_numbers.h"
#include "tests/unit/runner/run_tree_files.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct run_files files;

static void begin(void)
{
    run_files_make(&files);
}

static void end(void)
{
    run_files_remove(&files);
}

TestSuite(run_metadata_file, .init = begin, .fini = end);

static int read_number(const struct run_metadata *metadata, const char *key, double *value,
                       struct run_failure *failure)
{
    return run_metadata_number(metadata, key, RUN_SCALAR, NULL, value, failure);
}

static void expect_failure(int code, const char *pattern)
{
    struct run_metadata *metadata;
    struct run_failure failure = {0};

    cr_expect_eq(run_metadata_open(files.fd, &metadata, &failure), code);
    cr_expect_null(metadata);
    cr_expect_not_null(strstr(failure.text, pattern), "\"%s\" does not contain \"%s\"",
                       failure.text, pattern);
}

Test(run_metadata_file, wrong_files_are_refused)
{
    static const char name[] = "metadata.json";
    char path[100];

    snprintf(path, sizeof path, "%s/%s", files.path, name);
    expect_failure(-ENOENT, "metadata.json: No such file");
    cr_assert_eq(mkdir(path, 0755), 0);
    expect_failure(-EISDIR, name);
    cr_assert_eq(rmdir(path), 0);
    cr_assert_eq(mkfifo(path, 0644),
                 0); /* the FIFO has no writer, so open() must not wait for one */
    expect_failure(-ESPIPE, name);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(symlink(name, path), 0);
    expect_failure(-ELOOP, name);
}

Test(run_metadata_file, damaged_files_are_refused)
{
    static const struct {
        const char *text;
        unsigned offset;
        const char *expected;
    } cases[] = {
        {"", 0, "a line {"},
        {"[]\n1\n", 0, "a line {"},
        {"{\"a\": 1}\n", 0, "a line {"},
        {"{\n", 2, "a line with a key and its value;"},
        {"{\n1\n}\n", 2, "a line with a key and its value;"},
        {"{\n\"a\": \n}\n", 2, "a line with a key and its value;"},
        {"{\n\"a\"\n}\n", 2, "a line with a key and its value;"},
        {"{\n\"a\\\n}\n", 2, "a line with a key and its value;"},
        {"{\n\"a\": 1,\n", 10, "a line with a key and its value;"},
        {"{\n\"a\": 1,\n}\n", 10, "a line with a key and its value;"},
        {"{\n\"a\": 1,\n\n}\n", 10, "a line with a key and its value;"},
        {"{\n\"a\": 1", 8, "a line }"},
        {"{\n\"a\": 1\n", 9, "a line }"},
        {"{\n\"a\": 1\n\"b\": 2\n}\n", 9, "a comma at the end of the line before"},
        {"{\n}\n{\n}\n", 4, "the end of the file"},
        {"{\n\"a\": 1\n}\n\"b\": 2\n", 11, "the end of the file"},
        {"{\n}\n\n", 4, "the end of the file"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char start[60];

        run_files_write_text(&files, "metadata.json", cases[i].text);
        snprintf(start, sizeof start, "metadata.json: byte %u: expected ", cases[i].offset);
        expect_failure(-EINVAL, start);
        expect_failure(-EINVAL, cases[i].expected);
        expect_failure(-EINVAL, "copy the tree again");
    }
    run_files_write_text(&files, "metadata.json", "{\n\"\\q\": 1\n}\n");
    expect_failure(-EINVAL, "metadata.json: byte 4: not valid JSON: unknown escape");
}

Test(run_metadata_file, a_key_has_one_value)
{
    run_files_write_text(&files, "metadata.json", "{\n\"k\": 1,\n\"a\": 1,\n\"\\u006b\": 2\n}\n");
    expect_failure(-EINVAL, "metadata.json: the key \"k\" has two values; copy the tree again");
}

Test(run_metadata_file, too_many_keys)
{
    char *text = malloc((size_t)(GGUF_MAX_KEYS + 1) * 16), *at = text;

    cr_assert_not_null(text);
    at += sprintf(at, "{\n");
    for (int i = 0; i <= GGUF_MAX_KEYS; i++)
        at += sprintf(at, "\"%x\": 1%s\n", (unsigned)i, i < GGUF_MAX_KEYS ? "," : "");
    sprintf(at, "}\n");
    run_files_write_text(&files, "metadata.json", text);
    free(text);
    expect_failure(-EFBIG, "metadata.json: more than 262144 keys");
}

/* Keys with any bytes, which need not be what a C string would show. */
Test(run_metadata_file, keys_of_any_bytes)
{
    struct run_metadata *metadata;
    struct run_failure failure;
    char text[9000] = "{\n\"";
    double value = 0;

    memset(text + strlen(text), 'k', 8000);
    strcat(text, "\": 1,\n\"a\\u0000b\": 2,\n\"z\\u0000\": 3,\n\"\\u0000\": 4,\n\"z\": 5\n}");
    run_files_write_text(&files, "metadata.json", text);
    metadata = run_files_open_metadata(&files);
    cr_expect_not(run_metadata_has(metadata, "a"));
    cr_expect_not(run_metadata_has(metadata, ""));
    cr_expect_eq(read_number(metadata, "z", &value, &failure), 0);
    cr_expect_eq(value, 5);
    cr_expect_not(run_metadata_has_group(metadata, "kkk"), "too long, so it is left out");
    cr_expect(run_metadata_has_group(metadata, "z"));
    cr_expect_not(run_metadata_has_group(metadata, "zz"));
    text[3 + 8000] = '\0'; /* equal to the key in the first 511 bytes only */
    cr_expect_not(run_metadata_has(metadata, text + 3));
    run_metadata_close(metadata);
}

/* A key that is as long as the longest lookup is not found by a longer one. */
Test(run_metadata_file, names_that_are_too_long)
{
    char text[700] = "{\n\"", name[600];
    struct run_metadata *metadata;

    memset(name, 'k', sizeof name);
    memset(text + 3, 'k', 511);
    strcat(text, "\": 1\n}\n");
    run_files_write_text(&files, "metadata.json", text);
    metadata = run_files_open_metadata(&files);
    name[511] = '\0';
    cr_expect(run_metadata_has(metadata, name));
    name[511] = 'k';
    name[512] = '\0';
    cr_expect_not(run_metadata_has(metadata, name));
    run_metadata_close(metadata);
}

/* Functions without a failure leave it to the end of loading. */
Test(run_metadata_file, values_that_cannot_be_read)
{
    static const char text[] = "{\n\"a\": 1 2,\n\"b\": [1,\n\"unused\": 1 2,\n\"c\": 3\n}\n";
    struct run_failure failure = {0};
    struct run_metadata *metadata;
    const struct gguf_json *array;
    struct run_json json;
    double value = 7;
    size_t n;

    run_files_write_text(&files, "metadata.json", text);
    metadata = run_files_open_metadata(&files);
    cr_expect_eq(read_number(metadata, "c", &value, &failure), 0);
    cr_expect_eq(value, 3);
    cr_expect_eq(run_metadata_array(metadata, "b", &json, &array, &failure), -EINVAL);
    cr_expect_null(array);
    cr_expect_eq(read_number(metadata, "a", &value, &failure), -EINVAL);
    cr_expect_str_eq(failure.text,
                     "metadata.json: byte 9: not valid JSON: more text after the value");
    cr_expect_not(run_metadata_is_array(metadata, "a", &n));
    failure.text[0] = '\0';
    cr_expect_eq(run_metadata_finish(metadata, -ENOENT, &failure), -EINVAL);
    cr_expect_not_null(strstr(failure.text, "byte 9: not valid JSON"), "%s", failure.text);
    run_metadata_close(metadata);

    metadata = run_files_open_metadata(&files);
    cr_expect_not(run_metadata_is_array(metadata, "b", &n));
    cr_expect_eq(run_metadata_finish(metadata, 0, &failure), -EINVAL);
    run_metadata_close(metadata);
}

/* Values that were read stay. */
Test(run_metadata_file, after_the_end_of_loading)
{
    struct run_failure failure = {0};
    struct run_metadata *metadata;
    double value = 7;

    run_files_write_text(&files, "metadata.json", "{\n\"a\": 1,\n\"b\": 2\n}\n");
    metadata = run_files_open_metadata(&files);
    cr_expect_eq(read_number(metadata, "a", &value, &failure), 0);
    cr_expect_eq(run_metadata_finish(metadata, -ENOENT, &failure), -ENOENT);
    cr_expect_eq(run_metadata_finish(metadata, 0, &failure), 0);
    value = 7;
    cr_expect_eq(read_number(metadata, "a", &value, &failure), 0);
    cr_expect_eq(value, 1);
    cr_expect_eq(read_number(metadata, "b", &value, &failure), -EBADF);
    run_metadata_close(metadata);
}

Test(run_metadata_file, long_values_are_refused)
{
    const size_t n_bytes = (size_t)17 << 20;
    char *text = malloc(n_bytes + 100), *at = text;
    struct run_failure failure = {0};
    struct run_metadata *metadata;

    cr_assert_not_null(text);
    at += sprintf(at, "{\n\"long\": \"");
    memset(at, 'x', n_bytes);
    strcpy(at + n_bytes, "\"\n}\n");
    run_files_write_text(&files, "metadata.json", text);
    free(text);
    metadata = run_files_open_metadata(&files);
    cr_expect_null(run_metadata_string(metadata, "long"));
    cr_expect_eq(run_metadata_finish(metadata, 0, &failure), -EFBIG);
    cr_expect_str_eq(failure.text, "metadata: long: larger than 16777216 bytes");
    run_metadata_close(metadata);
}
