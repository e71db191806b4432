/*
 * Opens the files of tests/hostile: each is refused with the expected message, or mounts and can be
 * read.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/hostile/hostile.h"
#include "tests/unit/fs/tree_file.h"

TestSuite(gguf_refuse_files, .init = model_file_begin_test);

static void expect_refusal(const struct hostile_row *row, const struct gguf_report *report,
                           size_t n_errors)
{
    cr_expect_eq(report->n_errors, n_errors, "%s: %zu errors", row->breaks, report->n_errors);
    cr_expect_eq(report->first_error.code, row->code, "%s: got %d", row->breaks,
                 report->first_error.code);
    cr_expect_eq(report->first_error.file_offset, row->file_offset,
                 "%s: at %" PRIu64 " instead of %" PRIu64, row->breaks,
                 report->first_error.file_offset, row->file_offset);
    for (size_t i = 0; i < COUNT(row->words) && row->words[i]; i++)
        cr_expect_not_null(strstr(report->first_error.message, row->words[i]),
                           "%s: no \"%s\" in: %s", row->breaks, row->words[i],
                           report->first_error.message);
}

static void expect_tree(const struct hostile_row *row, struct fs_tree *tree)
{
    for (size_t i = 0; i < COUNT(row->words) && row->words[i]; i++) {
        const bool is_there = row->words[i][0] != '!';
        const char *path = row->words[i] + !is_there;

        cr_expect_eq(tree_file_find(tree, path) != FS_NO_NODE, is_there, "%s: %s", row->breaks,
                     row->words[i]);
    }
    for (fs_node_index i = 0; i < tree->nodes.count; i++) {
        if (tree->nodes.list[i].kind == FS_FILE)
            free(tree_file_read_node(tree, i).bytes);
    }
}

static void check_row(size_t number)
{
    size_t n_errors;
    const struct hostile_row *row = hostile_row_at(number, &n_errors);
    struct model_bytes bytes = row->build(row->argument);
    struct gguf_report report = {0};
    struct gguf_model *model = NULL;
    struct fs_tree *tree = NULL;
    const int descriptor = model_file_create(bytes.data, bytes.size_bytes);
    int result;

    cr_assert_eq(ftruncate(descriptor, (off_t)(bytes.size_bytes + bytes.hole_bytes)), 0);
    result = model_file_open_descriptor(descriptor, &model, &report);
    close(descriptor);
    cr_expect_eq(result == 0, model != NULL, "%s", row->breaks);
    if (result == 0)
        result = fs_tree_make(model, NULL, &tree, &report);
    cr_expect_eq(result, row->code, "%s: got %d: %s", row->breaks, result,
                 report.first_error.message);
    if (row->code)
        expect_refusal(row, &report, n_errors);
    if (tree)
        expect_tree(row, tree);
    fs_tree_free(tree);
    gguf_close(model);
    free(bytes.data);
}

/*
 * One test per file. It gets the row's number, because pointers are not valid in the process that
 * runs the test.
 */
ParameterizedTestParameters(gguf_refuse_files, each)
{
    static size_t numbers[1000];
    size_t count = 0, n_errors;

    for (; count < COUNT(numbers) && hostile_row_at(count, &n_errors); count++)
        numbers[count] = count;
    return cr_make_param_array(size_t, numbers, count);
}

ParameterizedTest(size_t *number, gguf_refuse_files, each)
{
    check_row(*number);
}

/* The file name contains `breaks`, so it must be unique. */
Test(gguf_refuse_files, rows_have_a_class_and_a_unique_name)
{
    const struct hostile_row *row, *other;
    size_t n_errors;

    for (size_t i = 0; (row = hostile_row_at(i, &n_errors)); i++) {
        char name[HOSTILE_NAME_BYTES], other_name[HOSTILE_NAME_BYTES];

        cr_expect(row->class_number >= 1 && row->class_number <= 27, "%s", row->breaks);
        cr_expect_eq(row->code<0, n_errors> 0, "%s", row->breaks);
        hostile_file_name(row, name);
        for (size_t j = 0; j < i; j++) {
            other = hostile_row_at(j, &n_errors);
            hostile_file_name(other, other_name);
            cr_expect_str_neq(name, other_name);
        }
    }
}
