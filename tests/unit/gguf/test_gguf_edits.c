/* Edits of keys: syntax, errors, and the resulting model. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/edits.h"
#include "tests/unit/gguf/model_file.h"
#include "tests/unit/fs/tree_file.h"

TestSuite(gguf_edits, .init = model_file_begin_test);

static struct gguf_model *make_model(void)
{
    struct gguf_writer *w = gguf_writer_open(3, false);

    gguf_writer_add_string(w, "first", "1");
    gguf_writer_add_string(w, "second", "2");
    gguf_writer_add_string(w, "third", "3");
    return model_file_make(w);
}

static void expect_json(const struct gguf_model *model, const char *path, const char *text)
{
    struct fs_tree *tree = tree_file_make_tree(model);

    tree_file_expect(tree, path, text);
    fs_tree_free(tree);
}

Test(gguf_edits, values_of_every_type)
{
    static const struct {
        const char *text;
        enum gguf_value_type type;
        const char *json;
    } good[] = {
        {"u8:255", GGUF_UINT8, "255"},
        {"u8:+7", GGUF_UINT8, "7"},
        {"u8:-0", GGUF_UINT8, "0"},
        {"uint8:007", GGUF_UINT8, "7"},
        {"i8:-128", GGUF_INT8, "-128"},
        {"i8:127", GGUF_INT8, "127"},
        {"u16:65535", GGUF_UINT16, "65535"},
        {"i16:-32768", GGUF_INT16, "-32768"},
        {"u32:4294967295", GGUF_UINT32, "4294967295"},
        {"i32:-2147483648", GGUF_INT32, "-2147483648"},
        {"u64:18446744073709551615", GGUF_UINT64, "18446744073709551615"},
        {"i64:-9223372036854775808", GGUF_INT64, "-9223372036854775808"},
        {"i64:9223372036854775807", GGUF_INT64, "9223372036854775807"},
        {"f32:0.1", GGUF_FLOAT32, "0.1"},
        {"f32:1e-46", GGUF_FLOAT32, "0.0"},
        {"f32:inf", GGUF_FLOAT32, "null"},
        {"f64:0.1", GGUF_FLOAT64, "0.1"},
        {"f64:-1e308", GGUF_FLOAT64, "-1e+308"},
        {"bool:true", GGUF_BOOL, "true"},
        {"bool:false", GGUF_BOOL, "false"},
        {"str:", GGUF_STRING, "\"\""},
        {"str:a:b=c\n", GGUF_STRING, "\"a:b=c\\n\""},
        {"string:\xff", GGUF_STRING, "\"\\udcff\""},
        {"arr:[]", GGUF_ARRAY, "[]"},
        {"arr:[1,-2]", GGUF_ARRAY, "[1,-2]"},
        {"arr:[4294967296]", GGUF_ARRAY, "[4294967296]"},
        {"arr:[1,0.5]", GGUF_ARRAY, "[1.0,0.5]"},
        {"arr:[true,false]", GGUF_ARRAY, "[true,false]"},
        {"arr:[\"a\",\"\\u00e9\\\\u0000\"]", GGUF_ARRAY, "[\"a\",\"\xc3\xa9\\\\u0000\"]"},
        {"arr:[[1,2],[],[3]]", GGUF_ARRAY, "[[1,2],[],[3]]"},
        {"arr[u8]:[1,255]", GGUF_ARRAY, "[1,255]"},
        {"arr[f64]:[1,\"0.1\"]", GGUF_ARRAY, "[1.0,0.1]"},
        {"arr[u64]:[9007199254740991,\"18446744073709551615\"]", GGUF_ARRAY,
         "[9007199254740991,18446744073709551615]"},
        {"arr[str]:[[\"x\"],[\"y\",\"\"]]", GGUF_ARRAY, "[[\"x\"],[\"y\",\"\"]]"},
        {"arr:[[[[[[[[1]]]]]]]]", GGUF_ARRAY, "[[[[[[[[1]]]]]]]]"},
    };

    for (size_t i = 0; i < COUNT(good); i++) {
        struct gguf_model *model = make_model();
        struct gguf_report report = {0};
        struct gguf_edits edits = {0};
        char text[256];

        snprintf(text, sizeof text, "key=%s", good[i].text);
        cr_assert_eq(gguf_edits_set(&edits, text, &report), 0, "%s", report.first_error.message);
        cr_assert_eq(gguf_edits_apply(&edits, model, &report), 0);
        gguf_edits_free(&edits);
        cr_expect_eq(gguf_find_key(model, "key")->value.type, good[i].type, "%s", text);
        snprintf(text, sizeof text, "%s\n", good[i].json);
        expect_json(model, "metadata/key.json", text);
        gguf_close(model);
    }
}

Test(gguf_edits, invalid_edits)
{
    static const struct {
        const char *text, *word;
    } bad[] = {
        {"", "KEY=TYPE:VALUE"},
        {"key", "KEY=TYPE:VALUE"},
        {"key=", "KEY=TYPE:VALUE"},
        {"key=u8", "KEY=TYPE:VALUE"},
        {"=u8:1", "has no key"},
        {"split.count=u16:1", "split.count"},
        {"key=:1", "unknown type \"\""},
        {"key=u9:1", "unknown type \"u9\""},
        {"key=arr[arr]:[]", "unknown"},
        {"key=arr[:[]", "unknown"},
        {"key=\x1b[2J:1", "\\x1b[2J"},
        {"key=u8:", "not an integer"},
        {"key=u8:256", "outside the range of u8, 0 to 255"},
        {"key=u8:-1", "outside the range"},
        {"key=i8:-129", "outside the range"},
        {"key=i8:128", "outside the range"},
        {"key=u64:18446744073709551616", "outside the range"},
        {"key=i64:-9223372036854775809", "outside the range"},
        {"key=i64:9223372036854775808", "outside the range"},
        {"key=u32: 1", "not an integer"},
        {"key=u32:1.5", "not an integer"},
        {"key=u32:--1", "not an integer"},
        {"key=u32:0x10", "not an integer"},
        {"key=f32:", "not a number"},
        {"key=f32: 1", "not a number"},
        {"key=f32:1x", "not a number"},
        {"key=f32:1e39", "outside the range of f32"},
        {"key=f64:1e309", "outside the range of f64"},
        {"key=bool:1", "neither true nor false"},
        {"key=arr:", "not JSON"},
        {"key=arr:[1,", "not JSON"},
        {"key=arr:[1] x", "not JSON"},
        {"key=arr:1", "not an array"},
        {"key=arr:{}", "not an array"},
        {"key=arr:[null]", "null or an object"},
        {"key=arr:[1,\"a\"]", "different kinds"},
        {"key=arr:[[1],2]", "arrays and other values"},
        {"key=arr:[\"a\\u0000b\"]", "NUL"},
        {"key=arr[u8]:[256]", "outside the range"},
        {"key=arr[u8]:[1.5]", "not an integer"},
        {"key=arr[bool]:[\"true\"]", "not of type bool"},
        {"key=arr[str]:[1]", "not of type str"},
        {"key=arr[u64]:[9007199254740993]", "2^53"},
        {"key=arr[i64]:[-9007199254740993]", "2^53"},
        {"key=arr[f64]:[1e999]", "outside the range"},
        {"key=arr:[[[[[[[[[1]]]]]]]]]", "8 deep"},
    };

    for (size_t i = 0; i < COUNT(bad); i++) {
        struct gguf_report report = {0};
        struct gguf_edits edits = {0};

        cr_expect_eq(gguf_edits_set(&edits, bad[i].text, &report), -EINVAL, "%s", bad[i].text);
        cr_expect_not_null(strstr(report.first_error.message, bad[i].word), "%s: %s", bad[i].text,
                           report.first_error.message);
        gguf_edits_free(&edits);
    }
}

Test(gguf_edits, longest_key)
{
    char *text = malloc(GGUF_MAX_KEY_BYTES + 16);

    cr_assert_not_null(text);
    for (size_t over = 0; over < 2; over++) {
        struct gguf_report report = {0};
        struct gguf_edits edits = {0};

        memset(text, 'k', GGUF_MAX_KEY_BYTES + over);
        strcpy(text + GGUF_MAX_KEY_BYTES + over, "=u8:1");
        cr_expect_eq(gguf_edits_set(&edits, text, &report), over ? -EINVAL : 0);
        gguf_edits_free(&edits);
    }
    free(text);
}

Test(gguf_edits, a_file_of_edits)
{
    static const char json[] =
        "{\"second\": \"two\", \"first\": null, \"a\": [1, 2], \"b\": true,\n"
        "\"c\": {\"type\": \"u64\", \"value\": \"18446744073709551615\"},\n"
        "\"d\": {\"type\": \"f32\", \"value\": 0.1}}\n";
    struct gguf_model *model = make_model();
    struct gguf_report report = {0};
    struct gguf_edits edits = {0};

    cr_assert_eq(gguf_edits_add_json(&edits, json, strlen(json), "edits", &report), 0, "%s",
                 report.first_error.message);
    cr_assert_eq(gguf_edits_apply(&edits, model, &report), 0);
    gguf_edits_free(&edits);
    cr_expect_not(model->is_current);
    expect_json(model, "metadata.json",
                "{\n\"second\": \"two\",\n\"third\": \"3\",\n\"a\": [1,2],\n\"b\": true,\n"
                "\"c\": 18446744073709551615,\n\"d\": 0.1\n}\n");
    gguf_close(model);
}

Test(gguf_edits, invalid_files_of_edits)
{
    static const struct {
        const char *json, *word;
    } bad[] = {
        {"", "not JSON"},
        {"[]", "not an object"},
        {"{\"a\": 1}", "has no type"},
        {"{\"a\": 1", "not JSON"},
        {"{\"\": true}", "has no key"},
        {"{\"a\": true, \"a\": null}", "twice"},
        {"{\"a\": {}}", "\"type\" and a \"value\""},
        {"{\"a\": {\"type\": \"u8\"}}", "\"type\" and a \"value\""},
        {"{\"a\": {\"type\": \"u8\", \"value\": 1, \"more\": 2}}", "\"type\" and a \"value\""},
        {"{\"a\": {\"type\": \"u8\", \"value\": true}}", "not of type u8"},
        {"{\"a\": {\"type\": \"str\", \"value\": 1}}", "not a string"},
        {"{\"a\": {\"type\": \"bool\", \"value\": 1}}", "not of type bool"},
        {"{\"split.no\": null}", "split.no"},
    };

    for (size_t i = 0; i < COUNT(bad); i++) {
        struct gguf_report report = {0};
        struct gguf_edits edits = {0};

        cr_expect_eq(
            gguf_edits_add_json(&edits, bad[i].json, strlen(bad[i].json), "edits", &report),
            -EINVAL, "%s", bad[i].json);
        cr_expect_not_null(strstr(report.first_error.message, bad[i].word), "%s: %s", bad[i].json,
                           report.first_error.message);
        gguf_edits_free(&edits);
    }
}

Test(gguf_edits, apply_in_order)
{
    static const char *const texts[] = {"new=u8:1", "-new", "new=u8:2", "second=u8:3", "-third"};
    struct gguf_model *model = make_model();
    struct gguf_report report = {0};
    struct gguf_edits edits = {0};

    for (size_t i = 0; i < COUNT(texts); i++) {
        if (texts[i][0] == '-')
            cr_assert_eq(gguf_edits_unset(&edits, texts[i] + 1, &report), 0);
        else
            cr_assert_eq(gguf_edits_set(&edits, texts[i], &report), 0);
    }
    cr_assert_eq(gguf_edits_apply(&edits, model, &report), 0);
    expect_json(model, "metadata.json", "{\n\"first\": \"1\",\n\"second\": 3,\n\"new\": 2\n}\n");
    /* "third" was already removed. */
    cr_expect_eq(gguf_edits_apply(&edits, model, &report), -EINVAL);
    cr_expect_not_null(strstr(report.first_error.message, "\"third\""));
    gguf_edits_free(&edits);
    gguf_close(model);
}

/* Return a model with an architecture and a standard key of a wrong type. */
static struct gguf_model *make_llama(void)
{
    struct gguf_writer *w = gguf_writer_open(3, false);

    gguf_writer_add_string(w, "general.architecture", "llama");
    gguf_writer_add_string(w, "llama.vocab_size", "many");
    return model_file_make(w);
}

Test(gguf_edits, types_of_standard_keys)
{
    static const struct {
        const char *text;
        int result;
    } cases[] = {
        {"general.architecture=str:gemma", 0},
        {"general.architecture=u32:1", -EINVAL},
        {"general.name=bool:true", -EINVAL},
        {"general.alignment=u64:32", -EINVAL},
        {"general.tags=arr:[\"a\"]", 0},
        {"general.tags=arr:[1]", -EINVAL},
        {"general.tags=str:a", -EINVAL},
        {"llama.context_length=u32:1", 0},
        {"llama.context_length=u64:1", 0},
        {"llama.context_length=i32:1", -EINVAL},
        {"llama.context_length=str:1", -EINVAL},
        {"llama.rope.freq_base=f32:1", 0},
        {"llama.rope.freq_base=f64:1", -EINVAL},
        {"llama.attention.head_count=arr:[1,2]", 0},
        {"llama.attention.head_count=arr:[1.5]", -EINVAL},
        {"llama.attention.causal=u8:1", -EINVAL},
        {"tokenizer.ggml.tokens=arr:[]", -EINVAL}, /* an empty array has type i32, as in gguf-py */
        {"tokenizer.ggml.tokens=arr[str]:[]", 0},
        {"tokenizer.ggml.scores=arr[f64]:[1]", -EINVAL},
        {"tokenizer.ggml.token_type=arr:[1]", 0},
        {"tokenizer.chat_template=u8:1", -EINVAL},
        /* A standard key may keep the type it has in the file, or get the standard type. */
        {"llama.vocab_size=str:few", 0},
        {"llama.vocab_size=u32:2", 0},
        {"llama.vocab_size=f32:2", -EINVAL},
        /* Any type is allowed for unknown keys and keys of other architectures. */
        {"gemma.context_length=str:1", 0},
        {"llama.no_such_key=str:1", 0},
        {"llama.context_length.x=str:1", 0},
        {"own=str:1", 0},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct gguf_model *model = make_llama();
        struct gguf_report report = {0};
        struct gguf_edits edits = {0};

        cr_assert_eq(gguf_edits_set(&edits, cases[i].text, &report), 0, "%s", cases[i].text);
        cr_expect_eq(gguf_edits_apply(&edits, model, &report), cases[i].result, "%s: %s",
                     cases[i].text, report.first_error.message);
        if (cases[i].result < 0)
            cr_expect_not_null(strstr(report.first_error.message, "specification"), "%s: %s",
                               cases[i].text, report.first_error.message);
        gguf_edits_free(&edits);
        gguf_close(model);
    }
}

Test(gguf_edits, alignments)
{
    static const struct {
        const char *text;
        int result;
    } cases[] = {
        {"u32:1", 0},
        {"u32:64", 0},
        {"u32:65536", 0},
        {"u32:131072", -EINVAL},
        {"u32:2147483648", -EINVAL},
        {"u32:0", -EINVAL},
        {"u32:3", -EINVAL},
        {"u64:32", -EINVAL},
        {"str:32", -EINVAL},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct gguf_model *model = make_model();
        struct gguf_report report = {0};
        struct gguf_edits edits = {0};
        char text[64];

        snprintf(text, sizeof text, "general.alignment=%s", cases[i].text);
        cr_assert_eq(gguf_edits_set(&edits, text, &report), 0);
        cr_expect_eq(gguf_edits_apply(&edits, model, &report), cases[i].result, "%s", text);
        gguf_edits_free(&edits);
        gguf_close(model);
    }
}
