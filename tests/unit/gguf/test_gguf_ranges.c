/* Models inside larger files: at a place that the user names, and in ZIP files. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/fs/tree_file.h"
#include "tests/unit/gguf/old_file.h"
#include "tests/unit/gguf/zip_file.h"

TestSuite(gguf_ranges, .init = model_file_begin_test);

/* Bytes before the model: the model is aligned to nothing, and to less than a page. */
static const size_t places[] = {1, 31, 4096 + 64};

/* Return the bytes with n_before and n_after others around them. */
static struct model_bytes surround(struct model_bytes bytes, size_t n_before, size_t n_after)
{
    struct model_bytes all = {.size_bytes = n_before + bytes.size_bytes + n_after};

    all.data = malloc(all.size_bytes);
    cr_assert_not_null(all.data);
    memset(all.data, 'x', all.size_bytes);
    memcpy(all.data + n_before, bytes.data, bytes.size_bytes);
    return all;
}

static int open_with(struct model_bytes bytes, const struct gguf_open_options *options,
                     struct gguf_model **model, struct gguf_report *report)
{
    const int descriptor = model_file_create(bytes.data, bytes.size_bytes);
    const int result = model_file_open_descriptor_with(descriptor, options, model, report);

    close(descriptor);
    return result;
}

static void expect_same_file(const struct gguf_model *a, const struct gguf_model *b,
                             const char *path)
{
    struct fs_tree *of_a = tree_file_make_tree(a), *of_b = tree_file_make_tree(b);

    cr_assert_eq(tree_file_find(of_a, path) == FS_NO_NODE,
                 tree_file_find(of_b, path) == FS_NO_NODE);
    if (tree_file_find(of_a, path) != FS_NO_NODE) {
        struct tree_file file_a = tree_file_read(of_a, path), file_b = tree_file_read(of_b, path);

        cr_assert_eq(file_a.size_bytes, file_b.size_bytes, "%s", path);
        cr_expect_arr_eq(file_a.bytes, file_b.bytes, file_a.size_bytes);
        free(file_a.bytes);
        free(file_b.bytes);
    }
    fs_tree_free(of_a);
    fs_tree_free(of_b);
}

/* Check that the file contains the model, n_before bytes behind its start. */
static void expect_model(struct model_bytes bytes, struct model_bytes file,
                         const struct gguf_open_options *options, size_t n_before)
{
    struct model_notes notes, plain_notes;
    struct gguf_report report = model_file_report(&notes);
    struct gguf_report plain_report = model_file_report(&plain_notes);
    struct gguf_model *plain, *model;

    cr_assert_eq(open_with(bytes, NULL, &plain, &plain_report), 0);
    cr_assert_eq(open_with(file, options, &model, &report), 0, "%s", report.first_error.message);
    cr_expect_eq(notes.count, plain_notes.count, "%s", notes.last.message);
    cr_expect_str_eq(model->format, plain->format);
    cr_expect_eq(model->files[0].source.start_offset, n_before);
    cr_assert_eq(model->n_keys, plain->n_keys);
    cr_assert_eq(model->n_tensors, plain->n_tensors);
    for (uint64_t i = 0; i < plain->n_tensors; i++) {
        const struct gguf_tensor *tensor = &model->tensors[i], *expected = &plain->tensors[i];

        cr_expect_eq(gguf_string_compare(tensor->name, expected->name), 0);
        cr_assert_eq(tensor->size_bytes, expected->size_bytes);
        cr_expect_eq(tensor->extent_bytes, expected->extent_bytes);
        cr_expect_eq(tensor->file_offset, expected->file_offset + n_before);
        cr_expect_eq(tensor->info_offset, expected->info_offset + n_before);
        if (tensor->size_bytes > 0)
            cr_expect_arr_eq(model->files[0].source.mapping + tensor->file_offset,
                             bytes.data + expected->file_offset, tensor->size_bytes);
    }
    expect_same_file(model, plain, "metadata.json");
    expect_same_file(model, plain, "model.gguf");
    gguf_close(model);
    gguf_close(plain);
}

static void expect_at_places(struct model_bytes bytes)
{
    for (size_t i = 0; i < COUNT(places); i++) {
        const struct gguf_open_options options = {.offset = places[i],
                                                  .size_bytes = bytes.size_bytes};
        struct model_bytes file = surround(bytes, places[i], 100);

        expect_model(bytes, file, &options, places[i]);
        /* To the end of the file. */
        file.size_bytes -= 100;
        expect_model(bytes, file, &(struct gguf_open_options){.offset = places[i]}, places[i]);
        free(file.data);
    }
}

static void expect_in_zip(struct model_bytes bytes)
{
    for (size_t i = 0; i < 6; i++) {
        const size_t n_before = i / 2 == 2 ? 70000 : i / 2;
        const struct model_bytes zip = zip_file_make(bytes, n_before, i % 2);

        expect_model(bytes, zip, NULL, n_before + ZIP_LOCAL_BYTES);
        free(zip.data);
    }
}

Test(gguf_ranges, gguf_files)
{
    for (size_t i = 0; i < MODEL_N_ENCODINGS; i++) {
        struct model_bytes bytes = model_file_rich(&model_encodings[i]);

        expect_at_places(bytes);
        expect_in_zip(bytes);
        free(bytes.data);
    }
}

Test(gguf_ranges, old_files)
{
    static const char *const architectures[] = {"4", "5.1", "5.2", "6", "7"};
    const struct old_file *file;

    for (size_t i = 0; (file = old_file_at(i)); i++) {
        struct model_bytes bytes = old_file_make(file);

        expect_at_places(bytes);
        expect_in_zip(bytes);
        free(bytes.data);
    }
    for (size_t i = 0; i < COUNT(architectures); i++) {
        struct model_bytes bytes =
            old_file_make_rwkv(100 + i % 2, architectures[i], 2, i % 2 ? 18 : 20);

        expect_at_places(bytes);
        expect_in_zip(bytes);
        free(bytes.data);
    }
}

static struct model_bytes two_tensors(void)
{
    struct gguf_writer *w = gguf_writer_open(3, false);

    gguf_writer_add_tensor(w, "a", 1, 1, (uint64_t[]){64}, 24, NULL, 64);
    gguf_writer_add_tensor(w, "b", 1, 1, (uint64_t[]){64}, 24, NULL, 64);
    return model_file_finish(w);
}

Test(gguf_ranges, places_outside_the_file)
{
    static const struct {
        uint64_t offset, size_bytes;
        const char *words;
    } rows[] = {
        {1000, 0, "-o offset=1000: the file ends at byte"},
        {UINT64_MAX, 0, "-o offset=18446744073709551615"},
        {UINT64_MAX, 2, "-o offset=18446744073709551615"},
        {1, UINT64_MAX, "-o size=18446744073709551615"},
        {0, 1000, "-o size=1000"},
    };
    struct model_bytes bytes = two_tensors();

    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct gguf_open_options options = {.offset = rows[i].offset,
                                                  .size_bytes = rows[i].size_bytes};
        struct gguf_report report = {0};
        struct gguf_model *model;

        cr_expect_eq(open_with(bytes, &options, &model, &report), -EINVAL);
        cr_expect_not_null(strstr(report.first_error.message, rows[i].words), "%s",
                           report.first_error.message);
    }
    free(bytes.data);
}

/* The size that the user gives is the end: data may not lie past it. */
Test(gguf_ranges, a_size_that_is_too_small)
{
    struct model_bytes bytes = two_tensors(), file = surround(bytes, 5, 1000);

    for (int partial = 0; partial < 2; partial++) {
        const struct gguf_open_options options = {
            .offset = 5, .size_bytes = bytes.size_bytes - 1, .partial = partial};
        struct model_notes notes;
        struct gguf_report report = model_file_report(&notes);
        struct gguf_model *model;
        const int result = open_with(file, &options, &model, &report);

        cr_expect_eq(result, partial ? 0 : -ENODATA);
        if (partial) {
            cr_expect_str_eq(notes.last.message, "1 of 2 tensors are not complete yet");
        } else {
            cr_expect_not_null(strstr(report.first_error.message, "1 of its 64 bytes"), "%s",
                               report.first_error.message);
            cr_expect_eq(notes.last.rule, GGUF_RULE_RANGE);
            cr_expect_not_null(strstr(notes.last.message, "it may be too small"), "%s",
                               notes.last.message);
        }
        gguf_close(model);
    }
    free(file.data);
    free(bytes.data);
}

Test(gguf_ranges, a_file_that_grows)
{
    struct model_bytes bytes = two_tensors(), file = surround(bytes, 5, 0);
    const struct gguf_open_options options = {.offset = 5, .partial = true};
    const int descriptor = model_file_create(file.data, file.size_bytes - 64);
    struct gguf_report report = {0};
    struct gguf_model *model;
    const struct gguf_tensor *tensors;

    cr_assert_eq(model_file_open_descriptor_with(descriptor, &options, &model, &report), 0, "%s",
                 report.first_error.message);
    tensors = model->tensors;
    cr_expect(gguf_source_has(&model->files[0].source, tensors[0].file_offset, 64));
    cr_expect_not(gguf_source_has(&model->files[0].source, tensors[1].file_offset, 64));
    cr_assert_eq(pwrite(descriptor, file.data, file.size_bytes, 0), (ssize_t)file.size_bytes);
    cr_expect(gguf_source_has(&model->files[0].source, tensors[1].file_offset, 64));
    gguf_close(model);
    close(descriptor);
    free(file.data);
    free(bytes.data);
}

/* The bytes around the model may change; its header must not. */
Test(gguf_ranges, changes)
{
    struct model_bytes bytes = two_tensors(), file = surround(bytes, 5, 5);
    const struct gguf_open_options options = {.offset = 5, .size_bytes = bytes.size_bytes};
    const int descriptor = model_file_create(file.data, file.size_bytes);
    struct gguf_report report = {0};
    struct gguf_model *model;

    cr_assert_eq(model_file_open_descriptor_with(descriptor, &options, &model, &report), 0, "%s",
                 report.first_error.message);
    cr_assert_eq(pwrite(descriptor, "y", 1, 4), 1);
    cr_expect_eq(gguf_model_check(model), 0);
    cr_assert_eq(pwrite(descriptor, "y", 1, 5 + 24 + 8), 1); /* the name of the first tensor */
    cr_expect_eq(gguf_model_check(model), -ESTALE);
    gguf_close(model);
    close(descriptor);
    free(file.data);
    free(bytes.data);
}

/* A file whose end has not arrived is not recognized as a ZIP file. */
Test(gguf_ranges, cut_zip_files)
{
    struct model_bytes bytes = two_tensors(), zip = zip_file_make(bytes, 0, true);

    for (int partial = 0; partial < 2; partial++) {
        const struct gguf_open_options options = {.partial = partial};

        for (size_t n_bytes = 4; n_bytes < zip.size_bytes; n_bytes++) {
            const struct model_bytes cut = {.data = zip.data, .size_bytes = n_bytes};
            struct gguf_report report = {0};
            struct gguf_model *model;

            cr_assert_eq(open_with(cut, &options, &model, &report), -EINVAL, "%zu bytes", n_bytes);
            cr_assert_not_null(strstr(report.first_error.message, "unfinished download?"), "%s",
                               report.first_error.message);
        }
    }
    free(zip.data);
    free(bytes.data);
}

/* A model in a ZIP file may have a ZIP file in its data, or at its end. */
Test(gguf_ranges, the_start_of_the_file_decides)
{
    struct model_bytes inner = two_tensors(), zip = zip_file_make(inner, 0, false);
    struct gguf_writer *w = gguf_writer_open(3, false);
    const uint64_t ne = zip.size_bytes;
    struct model_bytes outer;
    struct gguf_model *model;

    gguf_writer_set_alignment(w, 1);
    gguf_writer_add_tensor(w, "zip", 3, 1, &ne, 24, zip.data, zip.size_bytes);
    outer = model_file_finish(w);
    model = model_file_accept(outer.data, outer.size_bytes);
    cr_expect_eq(model->n_tensors, 1u);
    cr_expect_eq(model->files[0].source.start_offset, 0u);
    gguf_close(model);
    free(outer.data);
    free(zip.data);
    free(inner.data);
}
