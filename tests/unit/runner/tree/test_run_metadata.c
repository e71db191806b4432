/* The metadata of a tree, as the runner reads them, and failures. */
#include "contrib/runner/tree/metadata.h"
#include "tests/unit/runner/run_numbers.h"
#include "tests/unit/runner/run_tree_files.h"
#include "gguf/support/exit_status.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

/* ---- failures ---- */

Test(run_failure, stores_the_text_and_returns_the_code)
{
    struct run_failure failure;

    /* Bytes from the model are kept: run_message() escapes them when it prints. */
    cr_expect_eq(run_fail(&failure, -EINVAL, "a %s b", "\x1b[31m\xc3\xa9\xff"), -EINVAL);
    cr_expect_str_eq(failure.text, "a \x1b[31m\xc3\xa9\xff b");
}

Test(run_failure, long_texts_are_cut)
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

static struct run_metadata *metadata_of(const char *text)
{
    run_files_metadata(&files, text);
    return run_files_open_metadata(&files);
}

static int read_u32(const struct run_metadata *metadata, const char *key, size_t index,
                    uint32_t least, uint32_t most, uint32_t *value, struct run_failure *failure)
{
    const struct run_range range = {least, most, true};
    double number = *value;
    const int code = run_metadata_number(metadata, key, index, &range, &number, failure);

    *value = (uint32_t)number;
    return code;
}

static int read_float(const struct run_metadata *metadata, const char *key, size_t index,
                      float *value, struct run_failure *failure)
{
    const struct run_range range = {-FLT_MAX, FLT_MAX, false};
    double number = (double)*value;
    const int code = run_metadata_number(metadata, key, index, &range, &number, failure);

    *value = (float)number;
    return code;
}

Test(run_metadata, keys_of_the_architecture)
{
    struct run_metadata *metadata = metadata_of(
        "{\"general.architecture\": \"llama\", \"llama.a\": 1, \"other.a\": 2, \".a\": 3,"
        " \"s\": \"text\", \"t\": true, \"f\": false}");
    struct run_failure failure;
    uint32_t value = 7;
    bool is_true = false;

    cr_expect_str_eq(run_metadata_architecture(metadata), "llama");
    cr_expect_eq(read_u32(metadata, ".a", RUN_SCALAR, 0, 10, &value, &failure), 0);
    cr_expect_eq(value, 1u);
    cr_expect_eq(read_u32(metadata, "other.a", RUN_SCALAR, 0, 10, &value, &failure), 0);
    cr_expect_eq(value, 2u);
    cr_expect_eq(read_u32(metadata, ".none", RUN_SCALAR, 0, 10, &value, &failure), 0);
    cr_expect_eq(value, 2u, "a missing key leaves the default");
    cr_expect_str_eq(run_metadata_string(metadata, "s"), "text");
    cr_expect_null(run_metadata_string(metadata, "t"));
    cr_expect_null(run_metadata_string(metadata, "none"));
    cr_expect(run_metadata_is_true(metadata, "t", false));
    cr_expect_not(run_metadata_is_true(metadata, "f", false));
    cr_expect_not(run_metadata_is_true(metadata, "s", false));
    cr_expect_not(run_metadata_is_true(metadata, "none", false));
    cr_expect_eq(run_metadata_bool(metadata, "t", &is_true, &failure), 0);
    cr_expect(is_true);
    cr_expect_eq(run_metadata_bool(metadata, "none", &is_true, &failure), 0);
    cr_expect(is_true, "as it was");
    cr_expect_eq(run_metadata_bool(metadata, "f", &is_true, &failure), 0);
    cr_expect_not(is_true);
    cr_expect_eq(run_metadata_bool(metadata, "s", &is_true, &failure), -EINVAL);
    cr_expect_not(run_metadata_has(metadata, "none"));
    cr_expect(run_metadata_has(metadata, ".a"));
    cr_expect(run_metadata_has_group(metadata, "other."));
    cr_expect_not(run_metadata_has_group(metadata, "others."));
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

Test(run_metadata, long_names_of_architectures)
{
    char text[3000] = "{\"general.architecture\": \"";
    struct run_failure failure;
    struct run_metadata *metadata;
    uint32_t value = 5;

    memset(text + strlen(text), 'n', 2000);
    strcat(text, "\"}");
    metadata = metadata_of(text);
    cr_expect_eq(strlen(run_metadata_architecture(metadata)), 2000u);
    cr_expect_eq(read_u32(metadata, ".a", RUN_SCALAR, 0, 10, &value, &failure), 0);
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
        {"true", 10, -EINVAL, 0},
        {"false", 10, -EINVAL, 0},
        {"\"1\"", 10, -EINVAL, 0},
        {"null", 10, -EINVAL, 0},
        {"{}", 10, -EINVAL, 0},
        {"[]", 10, -EINVAL, 0},
        {"[4]", 10, -EINVAL, 0},
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
        cr_expect_eq(read_u32(metadata, "key", RUN_SCALAR, 0, cases[i].max, &value, &failure),
                     cases[i].code, "%s", cases[i].text);
        cr_expect_eq(value, cases[i].code == 0 ? cases[i].value : 99, "%s", cases[i].text);
        if (cases[i].code < 0)
            cr_expect_eq(strncmp(failure.text, "metadata: key: ", 15), 0, "%s", failure.text);
        run_metadata_close(metadata);
    }
}

Test(run_metadata, arrays_with_a_value_per_layer)
{
    struct run_metadata *metadata =
        metadata_of("{\"general.architecture\": \"llama\", \"llama.a\": [3, true, 2.5], \"b\": 8}");
    struct run_failure failure;
    uint32_t value = 0;
    float number = 0;

    cr_expect_eq(read_u32(metadata, ".a", 0, 0, 10, &value, &failure), 0);
    cr_expect_eq(value, 3u);
    cr_expect_eq(read_u32(metadata, ".a", 1, 0, 10, &value, &failure), 0);
    cr_expect_eq(value, 1u);
    cr_expect_eq(read_u32(metadata, ".a", 2, 0, 10, &value, &failure), -EINVAL);
    cr_expect_eq(read_float(metadata, ".a", 2, &number, &failure), 0);
    cr_expect_eq(number, 2.5f);
    cr_expect_eq(read_u32(metadata, ".a", 3, 0, 10, &value, &failure), -EINVAL);
    cr_expect_str_eq(failure.text, "metadata: llama.a: 3 values, layer 3 has none");
    cr_expect_eq(read_u32(metadata, ".a", RUN_SCALAR, 0, 10, &value, &failure), -EINVAL);
    cr_expect_eq(read_u32(metadata, "b", 1000, 0, 10, &value, &failure), 0);
    cr_expect_eq(value, 8u, "a single value applies to all layers");
    run_metadata_close(metadata);
}

Test(run_metadata, floats)
{
    struct run_metadata *metadata = metadata_of(
        "{\"a\": 1e-5, \"b\": 1e39, \"c\": -3, \"d\": true, \"e\": \"1\", \"f\": 1e-60}");
    struct run_failure failure;
    float value = 7;

    cr_expect_eq(read_float(metadata, "none", 0, &value, &failure), 0);
    cr_expect_eq(value, 7);
    cr_expect_eq(read_float(metadata, "a", 0, &value, &failure), 0);
    cr_expect_eq(value, 1e-5f);
    cr_expect_eq(read_float(metadata, "b", 0, &value, &failure), -EINVAL);
    cr_expect_eq(read_float(metadata, "c", 0, &value, &failure), 0);
    cr_expect_eq(value, -3);
    cr_expect_eq(read_float(metadata, "d", 0, &value, &failure), -EINVAL);
    cr_expect_eq(read_float(metadata, "e", 0, &value, &failure), -EINVAL);
    cr_expect_eq(read_float(metadata, "f", 0, &value, &failure), 0);
    cr_expect_eq(value, 0);
    run_metadata_close(metadata);
}

Test(run_metadata, least_value)
{
    struct run_metadata *metadata = metadata_of("{\"a\": 1, \"b\": 0}");
    struct run_failure failure;
    uint32_t value = 7;

    cr_expect_eq(read_u32(metadata, "a", RUN_SCALAR, 1, 10, &value, &failure), 0);
    cr_expect_eq(value, 1u);
    cr_expect_eq(read_u32(metadata, "b", RUN_SCALAR, 1, 10, &value, &failure), -EINVAL);
    cr_expect_str_eq(failure.text, "metadata: b: 0, not an integer from 1 to 10");
    run_metadata_close(metadata);
}

Test(run_metadata, elements)
{
    struct run_metadata *metadata =
        metadata_of("{\"a\": [1, true, null, \"x\", -4.5, NaN], \"empty\": [], \"text\": \"[]\","
                    " \"one\": 1}");
    static const float expected[] = {1, 1, NAN, NAN, -4.5f, NAN};
    struct run_failure failure;
    size_t n;

    cr_expect(run_metadata_is_array(metadata, "a", &n));
    cr_assert_eq(n, COUNT(expected));
    for (size_t i = 0; i < n; i++) {
        float value = 7;
        const int code = read_float(metadata, "a", i, &value, &failure);

        cr_expect_eq(code, isnan(expected[i]) ? -EINVAL : 0);
        cr_expect_eq(value, isnan(expected[i]) ? 7 : expected[i]);
    }
    cr_expect(run_metadata_is_array(metadata, "empty", &n) && n == 0);
    cr_expect_not(run_metadata_is_array(metadata, "text", &n));
    cr_expect_not(run_metadata_is_array(metadata, "one", &n));
    cr_expect_not(run_metadata_is_array(metadata, "none", &n));
    run_metadata_close(metadata);
}

Test(run_metadata, arrays)
{
    struct run_metadata *metadata = metadata_of("{\"general.architecture\": \"llama\", "
                                                "\"llama.a\": [\"x\", 2], \"b\": {}}");
    const struct gguf_json *array;
    struct run_failure failure;
    struct run_json json;

    cr_assert_eq(run_metadata_array(metadata, ".a", &json, &array, &failure), 0);
    cr_assert(array && array->child && array->child->next);
    cr_expect_str_eq(array->child->text.data, "x");
    cr_expect_eq(array->child->next->number, 2);
    cr_expect_null(array->child->next->next);
    run_json_free(&json);
    cr_expect_eq(run_metadata_array(metadata, "none", &json, &array, &failure), 0);
    cr_expect_null(array);
    cr_expect_eq(run_metadata_array(metadata, "b", &json, &array, &failure), -EINVAL);
    cr_expect_str_eq(failure.text, "metadata: b: not an array");
    run_metadata_close(metadata);
}

/* A line of `n` numbers. */
static char *long_line(size_t n)
{
    char *text = malloc(3 * n + 40), *at = text;

    cr_assert_not_null(text);
    at += sprintf(at, "{\n\"a\": 1,\n\"long\": [7");
    for (size_t i = 1; i < n; i++)
        at += sprintf(at, ", %zu", i % 10);
    strcpy(at, "],\n\"z\": 2\n}\n");
    return text;
}

/* They are read when they are needed, and values by layer have a limit. */
Test(run_metadata, long_arrays)
{
    static const size_t sizes[] = {3000, (size_t)6 << 20};

    for (size_t i = 0; i < COUNT(sizes); i++) {
        char *text = long_line(sizes[i]);
        const bool is_short = i == 0;
        const struct gguf_json *array;
        struct run_metadata *metadata;
        struct run_failure failure;
        struct run_json json;
        uint32_t value = 7;
        size_t n;

        run_files_write_text(&files, "metadata.json", text);
        free(text);
        metadata = run_files_open_metadata(&files);
        cr_expect_eq(read_u32(metadata, "z", RUN_SCALAR, 0, 10, &value, &failure), 0);
        cr_expect_eq(value, 2u);
        cr_expect(run_metadata_has(metadata, "long"));
        cr_expect_eq(run_metadata_is_array(metadata, "long", &n), is_short);
        cr_expect_eq(n, is_short ? sizes[i] : 0);
        cr_expect_eq(read_u32(metadata, "long", 12, 0, 10, &value, &failure),
                     is_short ? 0 : -EFBIG);
        cr_expect_eq(value, 2u);
        cr_assert_eq(run_metadata_array(metadata, "long", &json, &array, &failure), 0);
        cr_expect_eq(array->child->number, 7);
        cr_expect_eq(array->child->next->next->number, 2);
        run_json_free(&json);
        cr_expect_eq(run_metadata_finish(metadata, 0, &failure), is_short ? 0 : -EFBIG);
        run_metadata_close(metadata);
    }
}
