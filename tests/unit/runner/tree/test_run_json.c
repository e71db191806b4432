/* The pull parser of the runner: strings, numbers, limits and error messages. */
#include "contrib/runner/tree/json_reader.h"
#include "tests/unit/runner/run_numbers.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Open a reader for a text in memory. */
static struct run_json *json_of(const void *text, size_t length)
{
    char folder[] = "/tmp/ggufs-json-XXXXXX";
    const int tree_fd = mkdtemp(folder) ? open(folder, O_RDONLY | O_DIRECTORY) : -1;
    const int fd = openat(tree_fd, "json", O_WRONLY | O_CREAT, 0600);
    struct run_failure failure;
    struct run_json *json;

    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, text, length), (ssize_t)length);
    close(fd);
    cr_assert_eq(run_json_open(tree_fd, "json", 1 << 30, &json, &failure), 0, "%s", failure.text);
    unlinkat(tree_fd, "json", 0);
    close(tree_fd);
    rmdir(folder);
    return json;
}

/* Read to the end. Returns the last code and stores the number of tokens. */
static int read_all(const void *text, size_t length, size_t *n_tokens)
{
    struct run_json *json = json_of(text, length);
    struct run_failure failure = {0};
    struct run_json_token token;
    int code;

    for (*n_tokens = 0; (code = run_json_next(json, &token, &failure)) > 0; ++*n_tokens)
        ;
    if (code < 0)
        cr_expect_eq(strncmp(failure.text, "json: ", 6), 0, "%s", failure.text);
    run_json_close(json);
    return code;
}

static void expect_bytes(const char *in_json, const char *expected, size_t length)
{
    struct run_failure failure = {0};
    struct run_json_token token;
    struct run_json *json;
    char text[300];

    snprintf(text, sizeof text, "{\"%s\": \"%s\"}", in_json, in_json);
    json = json_of(text, strlen(text));
    cr_assert_eq(run_json_next(json, &token, &failure), 1, "%s", failure.text);
    cr_expect_eq(token.kind, RUN_JSON_OBJECT);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(run_json_next(json, &token, &failure), 1, "%s", failure.text);
        cr_expect_eq(token.kind, i == 0 ? RUN_JSON_KEY : RUN_JSON_STRING);
        cr_assert_eq(token.length, length, "%s", in_json);
        cr_expect_eq(memcmp(token.text, expected, length + 1), 0, "%s", in_json);
    }
    cr_assert_eq(run_json_next(json, &token, &failure), 1);
    cr_expect_eq(token.kind, RUN_JSON_END);
    cr_expect_eq(run_json_next(json, &token, &failure), 0);
    cr_expect_eq(run_json_next(json, &token, &failure), 0, "a read after the end");
    run_json_close(json);
}

static void expect_string(const char *in_json, const char *expected)
{
    expect_bytes(in_json, expected, strlen(expected));
}

Test(run_json, strings_decode_to_bytes)
{
    expect_string("", "");
    expect_string("plain", "plain");
    expect_string("\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t");
    expect_string("\xe2\x96\x81"
                  "a",
                  "\xe2\x96\x81"
                  "a");
    expect_string("\\u00e9\\u2581\\u0041", "\xc3\xa9\xe2\x96\x81"
                                           "A");
    /* Lone low surrogates stand for bytes that are not UTF-8. */
    expect_string("\\udc80\\udcff\\uDCFE", "\x80\xff\xfe");
    expect_string("a\\udce2\\udc96b", "a\xe2\x96"
                                      "b");
    /* A surrogate pair is a character, even if its second half could stand for a byte. */
    expect_string("\\ud83d\\ude00", "\xf0\x9f\x98\x80");
    expect_string("\\ud800\\udc80", "\xf0\x90\x82\x80");
    expect_string("\\ud800\\udc80\\udc80", "\xf0\x90\x82\x80\x80");
    expect_string("\\udbff\\udfff", "\xf4\x8f\xbf\xbf");
    expect_bytes("a\\u0000b", "a\0b", 3);
    expect_bytes("\\u0000", "\0", 1);
    /* An escaped backslash does not start an escape. */
    expect_string("\\\\udc80", "\\udc80");
    expect_string("\\\\\\udc80", "\\\x80");
    expect_string("\\\\u0000", "\\u0000");
}

Test(run_json, invalid_json_is_refused)
{
    static const char *const bad[] = {
        "",
        " ",
        "{",
        "}",
        "]",
        "[",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[1}",
        "{\"a\": 1]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\": 1,}",
        "{\"a\": 1",
        "{\"a\": 1 \"b\": 2}",
        "{\"a\", 1}",
        "{1: 1}",
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
        "\"\\x\"",
        "\"a\nb\"",
        "'a'",
        "{a: 1}",
        "{\"a\": 1} 2",
        "{\"a\": 1}}",
        "{\"a\": 1} {\"b\": 2}",
        "1 2",
        "nul",
        "nulL",
        "truefalse",
        "NaN",
        "Infinity",
        "+1",
        "-",
        "01",
        "1.",
        ".1",
        "1e",
        "1e+",
        "0x10",
        "1-2",
        "\xff",
    };
    size_t n;

    for (size_t i = 0; i < COUNT(bad); i++)
        cr_expect_eq(read_all(bad[i], strlen(bad[i]), &n), -EINVAL, "%s", bad[i]);
    cr_expect_eq(read_all("{}\0", 3, &n), -EINVAL);
    cr_expect_eq(read_all(" {} \n", 5, &n), 0);
    cr_expect_eq(n, 2u);
    cr_expect_eq(read_all("\r[\t]\n", 5, &n), 0);
    cr_expect_eq(n, 2u);
}

Test(run_json, every_prefix_is_refused)
{
    static const char text[] =
        "{\"a\": [1, \"\\ud83d\\ude00\\udc80\\u0000\"], \"b\": {\"c\": null}}";
    size_t n;

    for (size_t length = 0; length < strlen(text); length++)
        cr_expect_eq(read_all(text, length, &n), -EINVAL, "%zu bytes", length);
    cr_expect_eq(read_all(text, strlen(text), &n), 0);
    cr_expect_eq(n, 12u);
}

Test(run_json, deep_nesting_is_refused)
{
    enum { DEPTH = 65 };
    char text[2 * DEPTH];
    size_t n;

    memset(text, '[', DEPTH);
    cr_expect_eq(read_all(text, DEPTH, &n), -EINVAL);
    cr_expect_eq(n, DEPTH - 1u);
    memset(text + DEPTH - 1, ']', DEPTH - 1);
    cr_expect_eq(read_all(text, 2 * (DEPTH - 1), &n), 0);
}

Test(run_json, numbers)
{
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        {"0", 0},
        {"-0", 0},
        {"7", 7},
        {"-12", -12},
        {"0.5", 0.5},
        {"1e3", 1000},
        {"1E-2", 0.01},
        {"-1.25e+1", -12.5},
        {"1.1754943508222875e-38", 1.1754943508222875e-38},
        {"18446744073709551615", 18446744073709551615.0},
        {"1e400", INFINITY},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct run_json *json = json_of(cases[i].text, strlen(cases[i].text));
        struct run_failure failure;
        struct run_json_token token;

        cr_assert_eq(run_json_next(json, &token, &failure), 1, "%s", cases[i].text);
        cr_expect_eq(token.kind, RUN_JSON_NUMBER);
        cr_expect_eq(token.number, cases[i].value, "%s", cases[i].text);
        cr_expect_eq(run_json_next(json, &token, &failure), 0);
        run_json_close(json);
    }
}

/* Integers in an array are read in another way than a number at the end of a file. */
Test(run_json, integers_in_arrays)
{
    static const char text[] = "[0,-0,7,-12 ,999999999,1000000000,-123456789,12e1,1.5]";
    static const double values[] = {0, -0.0, 7, -12, 999999999, 1e9, -123456789, 120, 1.5};
    static const char *const wrong[] = {"[007]", "[-]", "[1-2]", "[1.]", "[00]", "[-01]", "[1e]"};
    struct run_json *json = json_of(text, strlen(text));
    struct run_failure failure;
    struct run_json_token token;

    cr_assert_eq(run_json_next(json, &token, &failure), 1);
    for (size_t i = 0; i < COUNT(values); i++) {
        cr_assert_eq(run_json_element(json, &token, &failure), 1, "element %zu", i);
        cr_expect_eq(token.number, values[i], "element %zu: %g", i, token.number);
        cr_expect_eq(signbit(token.number), signbit(values[i]), "element %zu", i);
    }
    cr_expect_eq(run_json_element(json, &token, &failure), 0);
    run_json_close(json);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        json = json_of(wrong[i], strlen(wrong[i]));
        cr_assert_eq(run_json_next(json, &token, &failure), 1);
        cr_expect_eq(run_json_element(json, &token, &failure), -EINVAL, "%s", wrong[i]);
        run_json_close(json);
    }
}

Test(run_json, failures_name_the_byte)
{
    struct run_json *json = json_of("[1, 2, x]", 9);
    struct run_failure failure;
    struct run_json_token token;

    while (run_json_next(json, &token, &failure) > 0)
        ;
    cr_expect_not_null(strstr(failure.text, ": byte 7: not valid JSON"), "%s", failure.text);
    run_json_close(json);
}

/* Tokens cross the ends of the reader's buffer. */
Test(run_json, long_files_are_read_in_pieces)
{
    enum { N = 20000, WIDTH = 17 };
    char *text = numbers_alloc(1 + N * WIDTH, 1);
    struct run_failure failure;
    struct run_json_token token;
    struct run_json *json;
    size_t at = 0, n = 0;

    text[at++] = '[';
    for (size_t i = 0; i < N; i++)
        at += (size_t)sprintf(text + at, i % 2 ? "%zu," : "\"\\u2581%zu\",", i);
    text[at - 1] = ']';
    json = json_of(text, at);
    cr_assert_eq(run_json_next(json, &token, &failure), 1);
    while (run_json_element(json, &token, &failure) > 0) {
        char expected[40];

        snprintf(expected, sizeof expected, "\xe2\x96\x81%zu", n);
        if (n % 2)
            cr_assert_eq(token.number, (double)n);
        else
            cr_assert_str_eq(token.text, expected);
        n++;
    }
    cr_expect_eq(n, (size_t)N);
    cr_expect_eq(run_json_next(json, &token, &failure), 0);
    run_json_close(json);
    free(text);
}

Test(run_json, elements_skip_nested_values)
{
    static const char text[] = "[[1, [2]], 3, {\"a\": [4]}, null]";
    static const enum run_json_kind kinds[] = {RUN_JSON_ARRAY, RUN_JSON_NUMBER, RUN_JSON_OBJECT,
                                               RUN_JSON_NULL};
    struct run_json *json = json_of(text, strlen(text));
    struct run_failure failure;
    struct run_json_token token;

    cr_assert_eq(run_json_next(json, &token, &failure), 1);
    for (size_t i = 0; i < COUNT(kinds); i++) {
        cr_assert_eq(run_json_element(json, &token, &failure), 1, "%s", failure.text);
        cr_expect_eq(token.kind, kinds[i]);
    }
    cr_expect_eq(run_json_element(json, &token, &failure), 0);
    cr_expect_eq(run_json_next(json, &token, &failure), 0);
    run_json_close(json);
}

Test(run_json, long_strings_are_refused)
{
    const size_t length = RUN_JSON_MAX_TEXT + 3;
    char *text = numbers_alloc(length, 1);
    size_t n;

    memset(text, 'a', length);
    text[0] = text[length - 1] = '"';
    cr_expect_eq(read_all(text, length, &n), -E2BIG);
    text[length - 2] = '"';
    cr_expect_eq(read_all(text, length - 1, &n), 0);
    free(text);
}
