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
        {"arr:[-2147483649]", GGUF_ARRAY, "[-2147483649]"},
        {"arr:[1,0.5]", GGUF_ARRAY, "[1.0,0.5]"},
        {"arr:[true,false]", GGUF_ARRAY, "[true,false]"},
        {"arr:[\"a\",\"\\u00e9\\\\u0000\"]", GGUF_ARRAY, "[\"a\",\"\xc3\xa9\\\\u0000\"]"},
        {"arr:[[1,2],[],[3]]", GGUF_ARRAY, "[[1,2],[],[3]]"},
        {"arr:[[\"a\"],[\"b\"]]", GGUF_ARRAY, "[[\"a\"],[\"b\"]]"},
        {"arr:[[1],[0.5]]", GGUF_ARRAY, "[[1.0],[0.5]]"},
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
        cr_assert_eq(gguf_edits_apply(&edits, &model, &report), 0);
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
        {"=u8:1", "has no key"},
        {"split.count=u16:1", "split.count"},
        {"\x1b[2J", "\\x1b[2J"},
        {"key=u8:", "not an integer"},
        {"key=u8:256", "outside the range of u8, 0 to 255"},
        {"key=u8:-1", "outside the range"},
        {"key=i8:-129", "outside the range"},
        {"key=i8:128", "outside the range"},
        {"key=u64:18446744073709551616", "outside the range"},
        {"key=i64:-9223372036854775809", "outside the range"},
        {"key=i64:9223372036854775808", "outside the range"},
        {"key=u32: 1", "not an integer"},
        {"key=u32:1.5", "\"1.5\" is not an integer, and the type is u32"},
        {"key=u32:--1", "not an integer"},
        {"key=u32:0x10", "not an integer"},
        {"key=f32:", "not a number"},
        {"key=f32: 1", "not a number"},
        {"key=f32:1x", "\"1x\" is not a number, and the type is f32"},
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
    cr_assert_eq(gguf_edits_apply(&edits, &model, &report), 0);
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
        {"{\"a\": 1", "not JSON"},
        {"{\"\": true}", "has no key"},
        {"{\"a\": true, \"a\": null}", "twice"},
        {"{\"a\": {}}", "\"type\" and a \"value\""},
        {"{\"a\": {\"type\": \"u8\"}}", "\"type\" and a \"value\""},
        {"{\"a\": {\"type\": \"u8\", \"value\": 1, \"more\": 2}}", "\"type\" and a \"value\""},
        {"{\"a\": {\"type\": \"u9\", \"value\": 1}}", "unknown type \"u9\"; available: u8"},
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
    static const char *const texts[] = {"new=u8:1", "-new",        "new=u8:2", "new=3",
                                        "-second",  "second=u8:3", "-third"};
    struct gguf_model *model = make_model();
    struct gguf_report report = {0};
    struct gguf_edits edits = {0};

    for (size_t i = 0; i < COUNT(texts); i++) {
        if (texts[i][0] == '-')
            cr_assert_eq(gguf_edits_unset(&edits, texts[i] + 1, &report), 0);
        else
            cr_assert_eq(gguf_edits_set(&edits, texts[i], &report), 0);
    }
    cr_assert_eq(gguf_edits_apply(&edits, &model, &report), 0);
    expect_json(model, "metadata.json", "{\n\"first\": \"1\",\n\"new\": 3,\n\"second\": 3\n}\n");
    /* "third" was already removed. */
    cr_expect_eq(gguf_edits_apply(&edits, &model, &report), -EINVAL);
    cr_expect_not_null(strstr(report.first_error.message, "\"third\""));
    gguf_edits_free(&edits);
    gguf_close(model);
}

/* Return a model with a key of each kind of type. */
static struct gguf_model *make_typed(void)
{
    struct gguf_writer *w = gguf_writer_open(3, false);

    gguf_writer_add_string(w, "text", "old");
    gguf_writer_add_u32(w, "count", 1);
    gguf_writer_add_u64(w, "big", 1);
    gguf_writer_add_array(w, "counts", GGUF_WRITER_U16, 1);
    gguf_writer_raw(w, "\1\0", 2);
    gguf_writer_add_array(w, "texts", GGUF_WRITER_STRING, 0);
    gguf_writer_add_array(w, "nested", GGUF_WRITER_ARRAY, 0);
    return model_file_make(w);
}

/* A row ends with the key's value as JSON or, if the edit fails, a part of the error. */
static const struct typed_edit {
    const char *edit;
    bool is_json, fails;
    const char *key, *expected;
} typed_edits[] = {
    {"count=7", false, false, "count", "7"},
    {"count=u32:7", false, false, "count", "7"},
    {"count=4294967296", false, true, "count", "outside the range of u32"},
    {"count=u64:7", false, true, "count", "its type is u32, not u64; leave the type out"},
    {"count=str:7", false, true, "count", "its type is u32, not str"},
    {"count=u99:7", false, true, "count", "\"u99\" is not a type; leave it out, the key is u32"},
    {"count=arr:[7]", false, true, "count", "its type is u32, not arr[i32]"},
    {"text=arr:[7]", false, true, "text", "its type is str, not arr[i32]"},
    {"text=u99:7", false, false, "text", "\"u99:7\""},
    {"text=new", false, false, "text", "\"new\""},
    {"text=", false, false, "text", "\"\""},
    {"text=http://a", false, false, "text", "\"http://a\""},
    {"text=str:str:a", false, false, "text", "\"str:a\""},
    {"counts=[2,65535]", false, false, "counts", "[2,65535]"},
    {"counts=arr:[2,65535]", false, false, "counts", "[2,65535]"},
    {"counts=arr:[65536]", false, true, "counts", "outside the range of u16"},
    {"counts=arr[u16]:[]", false, false, "counts", "[]"},
    {"counts=arr[i32]:[1]", false, true, "counts", "its type is arr[u16], not arr[i32]"},
    {"counts=u16:1", false, true, "counts", "its type is arr[u16], not u16"},
    {"counts=3", false, true, "counts", "not an array"},
    {"counts=u99:[1]", false, true, "counts",
     "\"u99\" is not a type; leave it out, the key is arr[u16]"},
    {"texts=arr:[]", false, false, "texts", "[]"},
    {"texts=[1]", false, true, "texts", "not of type str"},
    {"nested=[[1],[2]]", false, false, "nested", "[[1],[2]]"},
    {"new=u99:8", false, true, "new", "no such key, and \"u99\" is not a type"},
    {"new=7", false, true, "new", "a new one needs a type, for instance KEY=u32:VALUE, or f32"},
    {"llama.rope.freq_base=10000", false, true, "new", "for instance KEY=f32:VALUE (types"},
    {"llama.expert_weights_norm=1", false, true, "new", "for instance KEY=bool:VALUE (types"},
    {"llama.rope.scaling.type=1", false, true, "new", "for instance KEY=str:VALUE (types"},
    {"new=1e6", false, true, "new", "for instance KEY=f32:VALUE (types"},
    {"new=false", false, true, "new", "for instance KEY=bool:VALUE (types"},
    {"new=[\"a:b\"]", false, true, "new", "a new one needs a type, for instance KEY=arr:VALUE"},
    {"new=7 B", false, true, "new", "for instance KEY=str:VALUE (types"},
    {"new=u9:7", false, true, "new", "(types: u8 i8"},
    {"new=arr:[1]", false, false, "new", "[1]"},
    {"{\"count\": 7}", true, false, "count", "7"},
    {"{\"count\": \"7\"}", true, false, "count", "7"},
    {"{\"count\": 9007199254740993}", true, true, "count", "2^53"},
    {"{\"big\": 9007199254740991}", true, false, "big", "9007199254740991"},
    {"{\"count\": true}", true, true, "count", "not of type u32"},
    {"{\"counts\": [8]}", true, false, "counts", "[8]"},
    {"{\"counts\": {\"type\": \"arr\", \"value\": [9]}}", true, false, "counts", "[9]"},
    {"{\"text\": 1}", true, true, "text", "not a string"},
    {"{\"text\": {\"type\": \"arr\", \"value\": [9]}}", true, true, "text", "str, not arr[i32]"},
    {"{\"new\": 1}", true, true, "new", "{\"type\": \"u32\", \"value\": VALUE}, or f32"},
    {"{\"new\": 1.5}", true, true, "new", "{\"type\": \"f32\", \"value\": VALUE} (types"},
    {"{\"new\": \"x\"}", true, false, "new", "\"x\""},
};

Test(gguf_edits, a_key_keeps_its_type_and_a_new_one_needs_one)
{
    for (size_t i = 0; i < COUNT(typed_edits); i++) {
        const struct typed_edit *row = &typed_edits[i];
        struct gguf_model *model = make_typed();
        const struct gguf_key *key = gguf_find_key(model, row->key);
        const struct gguf_edit_type type =
            key ? gguf_edit_type_of(&key->value) : (struct gguf_edit_type){0};
        struct gguf_report report = {0};
        struct gguf_edits edits = {0};
        char path[64], text[64];

        if (row->is_json)
            cr_assert_eq(
                gguf_edits_add_json(&edits, row->edit, strlen(row->edit), "edits", &report), 0);
        else
            cr_assert_eq(gguf_edits_set(&edits, row->edit, &report), 0, "%s", row->edit);
        cr_expect_eq(gguf_edits_apply(&edits, &model, &report), row->fails ? -EINVAL : 0, "%s: %s",
                     row->edit, report.first_error.message);
        gguf_edits_free(&edits);
        if (row->fails) {
            cr_expect_not_null(strstr(report.first_error.message, row->expected), "%s: %s",
                               row->edit, report.first_error.message);
        } else {
            snprintf(path, sizeof path, "metadata/%s.json", row->key);
            snprintf(text, sizeof text, "%s\n", row->expected);
            expect_json(model, path, text);
            key = gguf_find_key(model, row->key);
            if (type.type != 0 && strcmp(row->key, "nested") != 0)
                cr_expect_eq(gguf_edit_type_of(&key->value).element, type.element, "%s", row->edit);
        }
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
        cr_expect_eq(gguf_edits_apply(&edits, &model, &report), cases[i].result, "%s", text);
        gguf_edits_free(&edits);
        gguf_close(model);
    }
}
