/* Files that are still being written (-o partial): which tensors can be read, and when. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/gguf/model_file.h"

TestSuite(gguf_partial, .init = model_file_begin_test);

enum { PAGE = 4096 };

/* Return a model of three tensors of a page each, at pages 1 to 3. */
static struct model_bytes pages(void)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    static unsigned char page[PAGE];

    gguf_writer_set_alignment(w, PAGE);
    for (size_t i = 0; i < PAGE; i++)
        page[i] = (unsigned char)(i % 250 + 1);
    for (size_t i = 0; i < 3; i++)
        gguf_writer_add_tensor(
            w, &"abc" [i], 1, 1, (uint64_t[]) { PAGE }, 24, page, PAGE);
    return model_file_finish(w);
}

static int open_partial(int descriptor, struct gguf_model **model, struct gguf_report *report)
{
    const struct gguf_open_options options = {.partial = true};
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    return gguf_open_with(path, &options, model, report);
}

/* Return true if a tensor can be read. Check that gguf_source_has() agrees. */
static bool is_there(const struct gguf_model *model, unsigned number)
{
    const struct gguf_tensor *tensor = &model->tensors[number];
    unsigned char page[PAGE];
    const int result = gguf_file_read(&model->files[0], tensor->file_offset, PAGE, page);

    cr_expect(result == 0 || result == -EIO);
    cr_expect_eq(gguf_source_has(&model->files[0].source, tensor->file_offset, PAGE), result == 0);
    if (result == 0)
        cr_expect_eq(page[249], 250);
    return result == 0;
}

static void write_at(int descriptor, struct model_bytes bytes, size_t start, size_t end)
{
    cr_assert_eq(pwrite(descriptor, bytes.data + start, end - start, (off_t)start),
                 (ssize_t)(end - start));
}

Test(gguf_partial, a_file_that_grows)
{
    struct model_bytes bytes = pages();
    const int descriptor = model_file_create(bytes.data, 2 * PAGE + 1);
    struct model_notes notes;
    struct gguf_report report = model_file_report(&notes);
    struct gguf_model *model;

    cr_assert_eq(open_partial(descriptor, &model, &report), 0, "%s", report.first_error.message);
    cr_expect_eq(notes.count, 1u);
    cr_expect_str_eq(notes.last.message, "2 of 3 tensors are not complete yet");
    cr_expect(is_there(model, 0) && !is_there(model, 1) && !is_there(model, 2));
    write_at(descriptor, bytes, 2 * PAGE, 4 * PAGE - 1);
    cr_expect(is_there(model, 0) && is_there(model, 1) && !is_there(model, 2));
    write_at(descriptor, bytes, 4 * PAGE - 1, 4 * PAGE);
    cr_expect(is_there(model, 2));
    cr_assert_eq(ftruncate(descriptor, 2 * PAGE), 0);
    cr_expect(is_there(model, 0) && !is_there(model, 1));
    gguf_close(model);
    close(descriptor);
    free(bytes.data);
}

Test(gguf_partial, a_file_with_holes)
{
    struct model_bytes bytes = pages();
    const int descriptor = model_file_create(bytes.data, 2 * PAGE);
    struct model_notes notes;
    struct gguf_report report = model_file_report(&notes);
    struct gguf_model *model;

    cr_assert_eq(ftruncate(descriptor, 4 * PAGE), 0);
    cr_assert_eq(open_partial(descriptor, &model, &report), 0, "%s", report.first_error.message);
    if (lseek(descriptor, 2 * PAGE, SEEK_HOLE) != 2 * PAGE)
        cr_skip_test("this file system has no holes");
    cr_expect_eq(notes.count, 1u);
    cr_expect(is_there(model, 0) && !is_there(model, 1) && !is_there(model, 2));
    write_at(descriptor, bytes, 3 * PAGE, 4 * PAGE);
    cr_expect(is_there(model, 0) && !is_there(model, 1) && is_there(model, 2));
    write_at(descriptor, bytes, 2 * PAGE, 3 * PAGE);
    cr_expect(is_there(model, 1));
    gguf_close(model);
    close(descriptor);
    free(bytes.data);
}

/* The last tensor of unknown type may become any size; the others end where the next one starts. */
Test(gguf_partial, tensors_of_unknown_type)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct model_notes notes;
    struct gguf_report report = model_file_report(&notes);
    struct model_bytes bytes;
    struct gguf_model *model;
    int descriptor;

    gguf_writer_add_tensor(w, "a", 1, 1, (uint64_t[]){64}, 999, NULL, 64);
    gguf_writer_add_tensor(w, "b", 1, 1, (uint64_t[]){64}, 999, NULL, 64);
    gguf_writer_add_tensor(w, "c", 1, 1, (uint64_t[]){64}, 999, NULL, 64);
    bytes = model_file_finish(w);
    descriptor = model_file_create(bytes.data, bytes.size_bytes - 2 * 64);
    cr_assert_eq(open_partial(descriptor, &model, &report), 0, "%s", report.first_error.message);
    cr_expect_str_eq(notes.last.message, "2 of 3 tensors are not complete yet");
    cr_expect_eq(model->tensors[0].extent_bytes, 64u);
    cr_expect_eq(model->tensors[1].extent_bytes, 64u);
    cr_expect_eq(model->tensors[2].extent_bytes, 0u);
    gguf_close(model);
    close(descriptor);
    free(bytes.data);
}

/* Without a complete header the tensors are unknown. */
Test(gguf_partial, the_header_must_be_complete)
{
    struct model_bytes bytes = pages();
    struct gguf_report report = {0};
    struct gguf_model *model;

    for (size_t length = 24; length < 24 + 3 * 33; length++) {
        const int descriptor = model_file_create(bytes.data, length);

        cr_expect_eq(open_partial(descriptor, &model, &report), -ENODATA, "%zu bytes", length);
        cr_expect_null(model);
        close(descriptor);
    }
    free(bytes.data);
}

/* -o partial relaxes no other rule. */
Test(gguf_partial, overlaps_are_refused)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct gguf_report report = {0};
    struct gguf_model *model;
    struct model_bytes bytes;
    int descriptor;

    gguf_writer_add_tensor(w, "a", 1, 1, (uint64_t[]){64}, 24, NULL, 64);
    gguf_writer_add_tensor(w, "b", 1, 1, (uint64_t[]){64}, 24, NULL, 64);
    gguf_writer_override_offset(w, 32);
    bytes = model_file_finish(w);
    descriptor = model_file_create(bytes.data, bytes.size_bytes - 100);
    cr_expect_eq(open_partial(descriptor, &model, &report), -EINVAL);
    close(descriptor);
    free(bytes.data);
}

/* Without -o partial, a changed header makes the file stale. */
Test(gguf_partial, a_changed_header_is_stale_without_partial)
{
    struct model_bytes bytes = pages();
    const int descriptor = model_file_create(bytes.data, bytes.size_bytes);
    const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    struct gguf_report report = {0};
    struct gguf_model *plain, *partial;

    cr_assert_eq(model_file_open_descriptor(descriptor, &plain, &report), 0);
    cr_assert_eq(open_partial(descriptor, &partial, &report), 0);
    cr_assert_eq(pwrite(descriptor, "g", 1, 0), 1);
    cr_assert_eq(futimens(descriptor, times), 0);
    cr_expect_eq(gguf_file_check(&plain->files[0], 4 * PAGE), -ESTALE);
    cr_expect_eq(gguf_file_check(&partial->files[0], 4 * PAGE), 0);
    cr_expect_eq(gguf_file_check(&partial->files[0], 4 * PAGE + 1), -EIO);
    gguf_close(plain);
    gguf_close(partial);
    close(descriptor);
    free(bytes.data);
}
