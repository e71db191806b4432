/* The reader of JSON: strings, numbers, structure, limits and the place of an error. */
#include "gguf/support/json_values.h"

#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { MAX_DEPTH = 64 };

/* A parsed copy of a text. */
struct document {
    char *text;
    struct gguf_json *values;
    const char *rule;
    size_t offset;
};

static struct document parse(const char *json, size_t length)
{
    struct document document = {.text = calloc(1, length + 1)};

    cr_assert_not_null(document.text);
    memcpy(document.text, json, length);
    document.values = calloc(gguf_json_room(document.text, length), sizeof *document.values);
    cr_assert_not_null(document.values);
    document.rule =
        gguf_json_parse(document.text, length, MAX_DEPTH, document.values, &document.offset);
    return document;
}

static void drop(struct document *document)
{
    free(document->values);
    free(document->text);
}

static void expect_bytes(const char *in_json, const char *expected, size_t length)
{
    struct document document;
    const struct gguf_json *member;
    char text[300];

    snprintf(text, sizeof text, "{\"%s\": \"%s\"}", in_json, in_json);
    document = parse(text, strlen(text));
    cr_assert_null(document.rule, "%s: %s", in_json, document.rule);
    cr_expect_eq(document.values->kind, GGUF_JSON_OBJECT);
    member = document.values->child;
    cr_assert_eq(member->key.length_bytes, length, "%s", in_json);
    cr_expect_eq(memcmp(member->key.data, expected, length + 1), 0, "%s", in_json);
    cr_assert_eq(member->text.length_bytes, length, "%s", in_json);
    cr_expect_eq(memcmp(member->text.data, expected, length + 1), 0, "%s", in_json);
    cr_expect_null(member->next);
    drop(&document);
}

static void expect_string(const char *in_json, const char *expected)
{
    expect_bytes(in_json, expected, strlen(expected));
}

Test(gguf_json, strings_decode_to_bytes)
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
    /* These lone surrogates stand for bytes that are not UTF-8. */
    expect_string("\\udc80\\udcff\\uDCFE", "\x80\xff\xfe");
    expect_string("a\\udce2\\udc96b", "a\xe2\x96"
                                      "b");
    /* Others are no characters. */
    expect_string("\\ud800\\u00e9\\udc7f\\ude00", "\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd");
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

Test(gguf_json, invalid_json_is_refused)
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
        "{\"a\": \"\\ud800\\",
        "{\"a\": \"\\ud83d",
        "{\"a\": \"\\udc8",
        "\"\\x\"",
        "'a'",
        "{a: 1}",
        "{\"a\": 1} 2",
        "{\"a\": 1}}",
        "{\"a\": 1} {\"b\": 2}",
        "1 2",
        "nul",
        "nulL",
        "truefalse",
        "+1",
        "-",
        "01",
        "-01",
        "1.",
        ".1",
        "1e",
        "1e+",
        "0x10",
        "1-2",
        "\xff",
        "[007]",
        "[-]",
        "[1.]",
        "[1e]",
        "inf",
        "-nan",
    };

    for (size_t i = 0; i < COUNT(bad); i++) {
        struct document document = parse(bad[i], strlen(bad[i]));

        cr_expect_not_null(document.rule, "%s", bad[i]);
        drop(&document);
    }
}

Test(gguf_json, every_prefix_is_refused)
{
    static const char text[] =
        "{\"a\": [1, \"\\ud83d\\ude00\\udc80\\u0000\"], \"b\": {\"c\": null}}";

    for (size_t length = 0; length <= strlen(text); length++) {
        struct document document = parse(text, length);

        cr_expect_eq(document.rule == NULL, length == strlen(text), "%zu bytes", length);
        drop(&document);
    }
}

Test(gguf_json, a_nul_ends_no_document)
{
    struct document document = parse("{}\0", 3), string = parse("\"a\0b\"", 5);

    cr_assert_not_null(document.rule);
    cr_expect_str_eq(document.rule, "more text after the value");
    cr_expect_eq(document.offset, 2u);
    cr_assert_null(string.rule);
    cr_expect_eq(string.values->text.length_bytes, 3u);
    drop(&document);
    drop(&string);
}

Test(gguf_json, deep_nesting_is_refused)
{
    char text[2 * MAX_DEPTH + 2];

    for (size_t depth = MAX_DEPTH; depth <= MAX_DEPTH + 1; depth++) {
        struct document document;

        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        document = parse(text, 2 * depth);
        cr_expect_eq(document.rule == NULL, depth == MAX_DEPTH, "%zu levels", depth);
        drop(&document);
    }
}

Test(gguf_json, numbers)
{
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        {"0", 0},
        {"-0", -0.0},
        {"7", 7},
        {"-12", -12},
        {"999999999", 999999999},
        {"-1000000000", -1e9},
        {"0.5", 0.5},
        {"1e3", 1000},
        {"0e5", 0},
        {"1E-2", 0.01},
        {"-1.25e+1", -12.5},
        {"1.1754943508222875e-38", 1.1754943508222875e-38},
        {"18446744073709551615", 18446744073709551615.0},
        {"1e400", INFINITY},
        {"-Infinity", -INFINITY},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[100];
        struct document document;

        snprintf(text, sizeof text, "[%s ,%s]", cases[i].text, cases[i].text);
        document = parse(text, strlen(text));
        cr_assert_null(document.rule, "%s", text);
        for (const struct gguf_json *item = document.values->child; item; item = item->next) {
            cr_expect_eq(item->kind, GGUF_JSON_NUMBER);
            cr_expect_eq(item->number, cases[i].value, "%s", text);
            cr_expect_eq(signbit(item->number), signbit(cases[i].value), "%s", text);
        }
        drop(&document);
    }
}

Test(gguf_json, items_and_members_are_in_order)
{
    static const char text[] =
        "\r\n{ \"b\" : [ true , false , null , { } , [ ] ] , \"a\\u0000\" : 1"
        " , \"a\" : 2 }\t";
    static const enum gguf_json_kind kinds[] = {GGUF_JSON_TRUE, GGUF_JSON_FALSE, GGUF_JSON_NULL,
                                                GGUF_JSON_OBJECT, GGUF_JSON_ARRAY};
    struct document document = parse(text, strlen(text));
    const struct gguf_json *item;

    cr_assert_null(document.rule);
    item = gguf_json_member(document.values, "b")->child;
    for (size_t i = 0; i < COUNT(kinds); i++, item = item->next) {
        cr_assert_not_null(item);
        cr_expect_eq(item->kind, kinds[i]);
        cr_expect_null(item->child);
    }
    cr_expect_null(item);
    cr_expect_eq(gguf_json_member(document.values, "a")->number, 2);
    cr_expect_null(gguf_json_member(document.values, "c"));
    cr_expect_null(gguf_json_member(document.values->child, "a"), "of an array");
    cr_expect_null(gguf_json_member(NULL, "a"));
    drop(&document);
}

Test(gguf_json, errors_name_the_byte)
{
    struct document document = parse("[1, 2, x]", 9);

    cr_expect_eq(document.offset, 7u);
    cr_assert_not_null(document.rule);
    cr_expect_str_eq(document.rule, "expected a value");
    drop(&document);
}
