/* The public interface, ggufs.h: each function, and each error that it promises. */
#include <criterion/criterion.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/command/command_line.h"
#include "fs/library/library.h"
#include "tests/unit/gguf/model_file.h"

TestSuite(library);

static struct ggufs_model *open_descriptor(int descriptor, const char *options)
{
    struct ggufs_model *model;
    struct ggufs_error error;
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    cr_assert_eq(ggufs_open(path, options, &model, &error), 0, "%s", error.message);
    cr_assert_not_null(model);
    return model;
}

static struct ggufs_model *open_bytes(struct model_bytes bytes, const char *options)
{
    const int descriptor = model_file_create(bytes.data, bytes.size_bytes);
    struct ggufs_model *model = open_descriptor(descriptor, options);

    close(descriptor);
    free(bytes.data);
    return model;
}

static struct ggufs_model *open_rich(size_t encoding)
{
    return open_bytes(model_file_rich(&model_encodings[encoding]), NULL);
}

static void expect_string(struct ggufs_string string, const char *text)
{
    cr_expect_eq(string.length_bytes, strlen(text), "%s", text);
    cr_expect(string.length_bytes == strlen(text) && memcmp(string.data, text, strlen(text)) == 0,
              "%s", text);
}

/* ---- models ---- */

Test(library, errors_say_why)
{
    static const struct {
        const char *path, *options;
        int code;
        const char *rule, *words;
    } cases[] = {
        {"/nonexistent/x.gguf", NULL, -ENOENT, "cannot-open", "No such file"},
        {"someone/model:Q4_0", NULL, -ENOENT, "not-a-file", "local files only"},
        {"Makefile", NULL, -EINVAL, "not-a-model", "text file"},
        {"/dev/null", NULL, -EINVAL, "not-a-file", "regular file"},
        {"tests/unit", NULL, -EISDIR, "not-a-file", "without a GGUF file"},
        {"Makefile", "dtype=f17", -EINVAL, NULL, "f32, f16, bf16"},
        {"Makefile", "exprt=f16", -EINVAL, NULL, "did you mean -o export"},
        {"Makefile", "type=40:X", -EINVAL, NULL, "NVFP4"},
        {"Makefile", "mapped", -EINVAL, NULL, "ggufs_catch_faults"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct ggufs_model *model = (void *)&model;
        struct ggufs_error error;

        cr_expect_eq(ggufs_open(cases[i].path, cases[i].options, &model, &error), cases[i].code,
                     "%s: %s", cases[i].path, error.message);
        cr_expect_null(model);
        cr_expect_eq(error.code, cases[i].code);
        cr_expect_eq(error.offset, GGUFS_NO_OFFSET, "%s", error.message);
        cr_expect_not_null(strstr(error.message, cases[i].words), "%s", error.message);
        if (cases[i].rule)
            cr_expect_str_eq(error.rule ? error.rule : "", cases[i].rule);
        else
            cr_expect(!error.rule && !error.remedy);
        cr_expect_eq(ggufs_open(cases[i].path, cases[i].options, &model, NULL), cases[i].code);
    }
}

static void bad_alignment(int *descriptor)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct model_bytes bytes;

    gguf_writer_add_u32(w, "general.alignment", 7);
    bytes = model_file_finish(w);
    *descriptor = model_file_create(bytes.data, bytes.size_bytes);
    free(bytes.data);
}

Test(library, errors_have_a_place_and_a_remedy)
{
    struct ggufs_model *model;
    struct ggufs_error error;
    int descriptor;
    char path[64];

    bad_alignment(&descriptor);
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    cr_expect_eq(ggufs_open(path, NULL, &model, &error), -EINVAL);
    cr_expect_str_eq(error.rule, "alignment");
    cr_expect_eq(error.offset, 24u); /* the key follows the header */
    cr_expect_not_null(strstr(error.message, "7"));
    cr_expect_not_null(error.remedy);
}

struct heard {
    size_t n_errors, n_others;
    char rule[64];
};

static void hear(void *user, const struct ggufs_finding *finding)
{
    struct heard *heard = user;

    heard->n_errors += finding->severity == GGUFS_ERROR;
    heard->n_others += finding->severity != GGUFS_ERROR;
    if (finding->severity == GGUFS_ERROR)
        snprintf(heard->rule, sizeof heard->rule, "%s", finding->rule ? finding->rule : "");
    cr_expect(strlen(finding->message) > 10);
}

Test(library, checks_report_each_finding)
{
    struct model_bytes rich = model_file_rich(&model_encodings[2]);
    int descriptor;
    char path[64];
    struct heard heard = {0};

    bad_alignment(&descriptor);
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    cr_expect_eq(ggufs_check(path, NULL, hear, &heard), -EINVAL);
    cr_expect_eq(heard.n_errors, 1u);
    cr_expect_str_eq(heard.rule, "alignment");

    heard = (struct heard){0};
    cr_expect_eq(ggufs_check(path, "dtype=f17", hear, &heard), -EINVAL);
    cr_expect_eq(heard.n_errors, 1u);
    cr_expect_str_eq(heard.rule, "");

    heard = (struct heard){0};
    descriptor = model_file_create(rich.data, rich.size_bytes);
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    cr_expect_eq(ggufs_check(path, NULL, hear, &heard), 0);
    cr_expect_eq(heard.n_errors, 0u);
    cr_expect_gt(heard.n_others, 0u); /* the unknown type, and keys that llama needs */
    free(rich.data);
}

Test(library, facts)
{
    for (size_t i = 0; i < MODEL_N_ENCODINGS; i++) {
        struct ggufs_model *model = open_rich(i);
        const struct ggufs_info *info = ggufs_get_info(model);

        cr_expect_str_eq(info->format, model_encodings[i].format);
        cr_expect_eq(info->is_big_endian, model_encodings[i].big_endian);
        cr_expect_eq(info->n_files, 1u);
        cr_expect_eq(info->n_keys, 17u);
        cr_expect_eq(info->n_tensors, 9u);
        cr_expect_eq(info->alignment_bytes, 32u);
        cr_expect_not_null(strstr(ggufs_file_path(model, 0), "/proc/self/fd/"));
        cr_expect_null(ggufs_file_path(model, 1));
        cr_expect_eq(ggufs_recheck(model), 0);
        ggufs_close(model);
    }
    ggufs_close(NULL);
    cr_expect_str_eq(ggufs_version(), GGUFS_VERSION);
}

/* Return true if the library takes the word; `problem` is its message otherwise. */
static bool takes(const char *word, char problem[1024])
{
    struct ggufs_model *model;
    struct ggufs_error error;

    ggufs_open("/nonexistent", word, &model, &error);
    snprintf(problem, 1024, "%s", error.message);
    return error.rule != NULL;
}

/* The options without dashes that --cat has. */
Test(library, options_are_those_of_the_command)
{
    static const char *const others[] = {"set", "unset", "edits", "subdir", "nosandbox"};
    const unsigned opens = 1u << FS_CAT;
    size_t n = 0;

    for (size_t i = 0; i < fs_command_line.n_rows; i++) {
        const struct gguf_option *option = &fs_command_line.rows[i];
        char word[100], problem[1024];
        bool is_other = !option->names || option->names[0] == '-' || !(option->commands & opens);

        for (size_t j = 0; j < COUNT(others) && !is_other; j++)
            is_other = strcmp(option->names, others[j]) == 0;
        if (is_other)
            continue;
        n++;
        for (size_t j = 0; j == 0 || gguf_option_choice(option, j); j++) {
            const char *choice = gguf_option_choice(option, j);

            snprintf(word, sizeof word, "%s%s%s", option->names, option->argument ? "=" : "",
                     choice                               ? choice
                     : strcmp(option->names, "type") == 0 ? "40:NVFP4"
                     : option->argument                   ? "1000"
                                                          : "");
            cr_expect(takes(word, problem), "%s: %s", word, problem);
        }
    }
    cr_expect_eq(n, 12u);
}

/* ---- keys ---- */

Test(library, keys_keep_their_types)
{
    for (size_t i = 0; i < MODEL_N_ENCODINGS; i++) {
        struct ggufs_model *model = open_rich(i);
        static const struct {
            const char *name;
            enum ggufs_value_type type;
            uint64_t u64;
            int64_t i64;
            double f64;
        } cases[] = {
            {"u8", GGUFS_UINT8, 255, 0, 0},
            {"i8", GGUFS_INT8, 0, -128, 0},
            {"u16", GGUFS_UINT16, 65535, 0, 0},
            {"i16", GGUFS_INT16, 0, -32768, 0},
            {"u32", GGUFS_UINT32, UINT32_MAX, 0, 0},
            {"i32", GGUFS_INT32, 0, INT32_MIN, 0},
            {"u64", GGUFS_UINT64, UINT64_MAX, 0, 0},
            {"i64", GGUFS_INT64, 0, INT64_MIN, 0},
            {"f32", GGUFS_FLOAT32, 0, 0, (double)0.1f},
            {"f64", GGUFS_FLOAT64, 0, 0, 0.1},
            {"bool", GGUFS_BOOL, 1, 0, 0},
        };

        for (size_t j = 0; j < COUNT(cases); j++) {
            const struct ggufs_key *key = ggufs_find_key(model, cases[j].name);
            static const uint32_t bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
            unsigned char out[8], same[8];
            float f32 = (float)cases[j].f64;

            cr_assert_not_null(key, "%s", cases[j].name);
            cr_expect_eq(key->type, cases[j].type);
            cr_expect_eq(key->element_type, cases[j].type);
            cr_expect_eq(key->n_elements, 1u);
            cr_expect_eq(key->element_bytes, bytes[key->type]);
            cr_expect_eq(key->u64, cases[j].u64, "%s", cases[j].name);
            cr_expect_eq(key->i64, cases[j].i64, "%s", cases[j].name);
            cr_expect(key->f64 == cases[j].f64, "%s", cases[j].name);
            memcpy(same,
                   key->type == GGUFS_FLOAT32   ? (const void *)&f32
                   : key->type == GGUFS_FLOAT64 ? (const void *)&key->f64
                   : cases[j].i64               ? (const void *)&key->i64
                                                : (const void *)&key->u64,
                   key->element_bytes);
            cr_expect_eq(ggufs_key_numbers(model, key, 0, 1, out), 0);
            cr_expect_arr_eq(out, same, key->element_bytes, "%s", cases[j].name);
            cr_expect_eq(ggufs_key_numbers(model, key, 1, 1, out), -ERANGE);
            cr_expect_eq(ggufs_key_numbers(model, key, UINT64_MAX, 2, out), -ERANGE);
            cr_expect_eq(ggufs_key_numbers(model, key, 1, 0, NULL), 0);
            cr_expect_eq(ggufs_key_strings(model, key, 0, 1, NULL), -EINVAL);
        }
        cr_expect_null(ggufs_find_key(model, "u"));
        cr_expect_null(ggufs_find_key(model, ""));
        expect_string(ggufs_key_at(model, 0)->name, "general.architecture");
        expect_string(ggufs_key_at(model, 0)->string, "llama");
        expect_string(ggufs_key_at(model, 16)->name, "a/b %.\x01");
        cr_expect_null(ggufs_key_at(model, 17));
        ggufs_close(model);
    }
}

Test(library, arrays)
{
    for (size_t i = 0; i < MODEL_N_ENCODINGS; i++) {
        struct ggufs_model *model = open_rich(i);
        const struct ggufs_key *key = ggufs_find_key(model, "tokens");
        struct ggufs_string strings[5];
        unsigned char bools[3];

        cr_expect_eq(key->type, GGUFS_ARRAY);
        cr_expect_eq(key->element_type, GGUFS_STRING);
        cr_expect_eq(key->n_elements, 5u);
        cr_expect_eq(ggufs_key_strings(model, key, 0, 5, strings), 0);
        expect_string(strings[0], "<s>");
        expect_string(strings[1], "");
        expect_string(strings[4], "\xff\xfe");
        cr_expect_eq(ggufs_key_strings(model, key, 2, 1, strings), 0);
        expect_string(strings[0], "a \"quoted\" word");
        cr_expect_eq(ggufs_key_strings(model, key, 5, 0, NULL), 0);
        cr_expect_eq(ggufs_key_strings(model, key, 4, 2, strings), -ERANGE);
        cr_expect_eq(ggufs_key_numbers(model, key, 0, 1, strings), -EINVAL);

        key = ggufs_find_key(model, "bools");
        cr_expect_eq(ggufs_key_numbers(model, key, 0, 3, bools), 0);
        cr_expect_arr_eq(bools, "\0\1\0", 3);
        cr_expect_eq(ggufs_key_numbers(model, key, 2, 2, bools), -ERANGE);
        key = ggufs_find_key(model, "nothing");
        cr_expect_eq(ggufs_key_numbers(model, key, 0, 0, NULL), 0);
        key = ggufs_find_key(model, "nested");
        cr_expect_eq(key->element_bytes, 0u);
        cr_expect_eq(ggufs_key_numbers(model, key, 0, 1, bools), -EINVAL);
        cr_expect_eq(ggufs_key_strings(model, key, 0, 1, strings), -EINVAL);
        key = ggufs_find_key(model, "general.architecture");
        cr_expect_eq(ggufs_key_strings(model, key, 0, 1, strings), 0);
        expect_string(strings[0], "llama");
        ggufs_close(model);
    }
}

/* Strings are found by marks: before, at and after them. */
Test(library, any_string_of_a_long_array)
{
    enum { N = 1000 };
    struct gguf_writer *w = gguf_writer_open(3, true);
    struct ggufs_string strings[600];
    struct ggufs_model *model;
    const struct ggufs_key *key;
    char text[20];

    gguf_writer_add_array(w, "strings", GGUF_WRITER_STRING, N);
    for (int i = 0; i < N; i++)
        gguf_writer_string(w, text, (size_t)snprintf(text, sizeof text, "%d", i));
    gguf_writer_add_array(w, "numbers", GGUF_WRITER_I16, N);
    for (int16_t i = 0; i < N; i++)
        gguf_writer_i16(w, (int16_t)-i);
    model = open_bytes(model_file_finish(w), NULL);
    key = ggufs_find_key(model, "strings");
    for (uint64_t first = 0; first < N; first += 85) {
        const uint64_t n = N - first < COUNT(strings) ? N - first : COUNT(strings);

        cr_assert_eq(ggufs_key_strings(model, key, first, n, strings), 0);
        for (uint64_t i = 0; i < n; i++) {
            snprintf(text, sizeof text, "%d", (int)(first + i));
            expect_string(strings[i], text);
        }
    }
    key = ggufs_find_key(model, "numbers");
    for (uint64_t first = 0; first < N - 2; first++) {
        int16_t numbers[2];

        cr_assert_eq(ggufs_key_numbers(model, key, first, 2, numbers), 0);
        cr_expect_eq(numbers[0], -(int)first);
        cr_expect_eq(numbers[1], -(int)first - 1);
    }
    ggufs_close(model);
}
