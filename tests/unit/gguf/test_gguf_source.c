/*
 * Sources: they give the bytes of their file, notice changes, and keep a copy of the header but not
 * of the data.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gguf/source.h"
#include "tests/unit/gguf/old_file.h"

TestSuite(gguf_source, .init = model_file_begin_test);

enum { N_BYTES = 300 << 10 };

static unsigned char bytes[N_BYTES];

static void fill_bytes(void)
{
    uint64_t state = 1;

    for (size_t i = 0; i < N_BYTES; i++)
        bytes[i] = (unsigned char)model_file_random(&state);
}

static struct gguf_file open_file(int descriptor, const struct gguf_source_kind *kind)
{
    struct gguf_report report = {0};
    struct gguf_file file;
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    cr_assert_eq(gguf_file_open(kind, NULL, 0, path, &file, &report), 0, "%s",
                 report.first_error.message);
    return file;
}

/* Collects lent bytes. */
struct collector {
    unsigned char *out;
    size_t n_stretches, longest, unit_bytes, done;
};

static void collect(void *argument, uint64_t at, const uint8_t *lent, size_t n_bytes)
{
    struct collector *collector = argument;

    cr_assert_eq(at, collector->done);
    cr_assert_eq(at % collector->unit_bytes, 0u);
    memcpy(collector->out + at, lent, n_bytes);
    collector->done += n_bytes;
    collector->n_stretches++;
    if (n_bytes > collector->longest)
        collector->longest = n_bytes;
}

/* Check that a source of any kind gives `bytes`, read and lent, and no byte more. */
static void expect_bytes(const struct gguf_file *file)
{
    const struct gguf_source *source = &file->source;
    static const size_t units[] = {1, 34, 144, 1000, GGUF_LENT_BYTES};
    static unsigned char out[N_BYTES];

    cr_expect_eq(source->size_bytes, (uint64_t)N_BYTES);
    cr_expect_eq(gguf_file_read(file, 12345, 67890, out), 0);
    cr_expect_arr_eq(out, bytes + 12345, 67890);
    for (size_t i = 0; i < COUNT(units); i++) {
        struct collector collector = {.out = out, .unit_bytes = units[i]};
        const size_t n = N_BYTES - 7;

        memset(out, 0, sizeof out);
        cr_expect_eq(gguf_source_lend(source, 7, n, units[i], collect, &collector), 0);
        cr_expect_eq(collector.done, n);
        cr_expect_arr_eq(out, bytes + 7, n);
        if (source->mapping)
            cr_expect_eq(collector.n_stretches, 1u);
        else
            cr_expect_leq(collector.longest, GGUF_LENT_BYTES);
    }
    cr_expect_eq(gguf_file_read(file, N_BYTES - 1, 2, out), -EIO);
    cr_expect(gguf_source_has(source, 0, N_BYTES));
    cr_expect_not(gguf_source_has(source, 1, N_BYTES));
    cr_expect_not(gguf_source_has(source, UINT64_MAX, 1));
}

Test(gguf_source, files_give_their_bytes)
{
    static const struct gguf_source_kind *const kinds[] = {&gguf_mapped_file, &gguf_read_file,
                                                           &gguf_growing_file};
    int descriptor;

    fill_bytes();
    descriptor = model_file_create(bytes, N_BYTES);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct gguf_file file = open_file(descriptor, kinds[i]);

        cr_expect_eq(file.source.is_growing, kinds[i] == &gguf_growing_file);
        cr_expect_eq(file.source.mapping != NULL, kinds[i] == &gguf_mapped_file);
        expect_bytes(&file);
        gguf_file_close(&file);
        gguf_file_close(&file); /* the second close does nothing */
    }
    close(descriptor);
}

Test(gguf_source, truncated_bytes_are_an_error)
{
    static unsigned char out[N_BYTES];
    int descriptor;

    fill_bytes();
    descriptor = model_file_create(bytes, N_BYTES);
    for (int is_read = 0; is_read < 2; is_read++) {
        struct gguf_file file =
            open_file(descriptor, is_read ? &gguf_read_file : &gguf_mapped_file);

        cr_assert_eq(ftruncate(descriptor, N_BYTES / 2 + 1), 0);
        for (size_t n = 1; n <= N_BYTES; n = 2 * n + 1) {
            struct collector collector = {.out = out, .unit_bytes = 1};
            const int expected = n > N_BYTES / 2 + 1 ? -EIO : 0;

            cr_expect_eq(gguf_file_read(&file, 0, n, out), expected, "%zu", n);
            /* After a fault, bytes may be lent again, which collect() does not accept. */
            if (expected == 0)
                cr_expect_eq(gguf_source_lend(&file.source, 0, n, 1, collect, &collector), 0);
        }
        cr_expect_eq(gguf_file_check(&file, N_BYTES / 2 + 1), 0);
        cr_expect_eq(gguf_file_check(&file, N_BYTES / 2 + 2), -EIO);
        cr_assert_eq(pwrite(descriptor, bytes, N_BYTES, 0), N_BYTES);
        gguf_file_close(&file);
    }
    close(descriptor);
}

static void copy_out(void *argument, uint64_t at, const uint8_t *lent, size_t n_bytes)
{
    memcpy((unsigned char *)argument + at, lent, n_bytes);
}

Test(gguf_source, pages_past_the_end_are_an_error)
{
    static unsigned char out[N_BYTES];
    const long page_bytes = sysconf(_SC_PAGESIZE);
    struct gguf_file file;
    int descriptor;

    fill_bytes();
    descriptor = model_file_create(bytes, N_BYTES);
    file = open_file(descriptor, &gguf_mapped_file);
    cr_assert_eq(ftruncate(descriptor, page_bytes + 10), 0);
    for (int i = 0; i < 3; i++) { /* the handler must survive a fault */
        cr_expect_eq(gguf_source_lend(&file.source, 0, N_BYTES, 1, copy_out, out), -EIO);
        /* The rest of the last page reads as zeros; only the check notices. */
        cr_expect_eq(gguf_source_lend(&file.source, (uint64_t)page_bytes, 11, 1, copy_out, out), 0);
        cr_expect_eq(gguf_file_check(&file, (uint64_t)page_bytes + 11), -EIO);
        cr_expect_eq(gguf_file_check(&file, (uint64_t)page_bytes + 10), 0);
        cr_expect_eq(gguf_source_lend(&file.source, (uint64_t)page_bytes, 10, 1, copy_out, out), 0);
        cr_expect_arr_eq(out, bytes + page_bytes, 10);
    }
    gguf_file_close(&file);
    close(descriptor);
}

static struct gguf_model *open_model(int descriptor)
{
    struct gguf_report report = {0};
    struct gguf_model *model;

    cr_assert_eq(model_file_open_descriptor(descriptor, &model, &report), 0, "%s",
                 report.first_error.message);
    return model;
}

static void write_byte(int descriptor, unsigned char byte, uint64_t offset)
{
    /* A new time at every call, however coarse the clock is. */
    static time_t seconds = 1000;
    const struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};

    seconds++;
    cr_assert_eq(pwrite(descriptor, &byte, 1, (off_t)offset), 1);
    cr_assert_eq(futimens(descriptor, times), 0);
}

/*
 * Change every byte of a file in turn. A change of the header makes the file stale, a change of
 * data does not.
 */
static void check_bytes_of(const struct model_bytes *file,
                           bool (*is_data)(const struct gguf_model *, uint64_t))
{
    const int descriptor = model_file_create(file->data, file->size_bytes);
    struct gguf_model *model = open_model(descriptor);
    unsigned generation = gguf_file_generation(&model->files[0]);

    for (uint64_t at = 0; at < file->size_bytes; at++) {
        write_byte(descriptor, file->data[at] ^ 1, at);
        if (is_data(model, at)) {
            cr_assert_eq(gguf_model_check(model), 0, "byte %ju", (uintmax_t)at);
            cr_assert_eq(gguf_model_generation(model), ++generation);
        } else {
            cr_assert_eq(gguf_model_check(model), -ESTALE, "byte %ju", (uintmax_t)at);
            cr_assert_eq(gguf_model_check(model), -ESTALE);
            cr_assert_eq(gguf_model_generation(model), generation);
        }
        write_byte(descriptor, file->data[at], at);
        cr_assert_eq(gguf_model_check(model), 0);
        cr_assert_eq(gguf_model_generation(model), ++generation);
    }
    gguf_close(model);
    close(descriptor);
}

/* Return true for tensor data and for the padding before them, which is never read. */
static bool is_old_data(const struct gguf_model *model, uint64_t at)
{
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        const struct gguf_tensor *tensor = &model->tensors[i];
        const uint64_t entry_end =
            tensor->info_offset + 4 * (3 + (uint64_t)tensor->n_dims) + tensor->name.length_bytes;

        if (at >= entry_end && at < tensor->file_offset + tensor->size_bytes)
            return true;
    }
    return false;
}

static uint64_t header_bytes;

static bool is_after_header(const struct gguf_model *model, uint64_t at)
{
    return at >= header_bytes;
}

Test(gguf_source, header_of_a_gguf_file)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct model_bytes file;

    gguf_writer_add_string(w, "key", "value");
    gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){64}, 24, NULL, 64);
    file = model_file_finish(w);
    header_bytes = 24 + (8 + 3 + 4 + 8 + 5) + (8 + 1 + 4 + 8 + 4 + 8);
    check_bytes_of(&file, is_after_header);
    free(file.data);
}

Test(gguf_source, headers_of_old_files)
{
    const struct old_file *kind;

    for (size_t i = 0; (kind = old_file_at(i)) && i < 4; i++) {
        struct model_bytes file = old_file_make(kind);

        check_bytes_of(&file, is_old_data);
        free(file.data);
    }
}

Test(gguf_source, header_copies_of_old_files_contain_no_data)
{
    const struct old_file *kind;

    for (size_t i = 0; (kind = old_file_at(i)); i++) {
        struct model_bytes file = old_file_make(kind);
        struct gguf_model *model = model_file_accept(file.data, file.size_bytes);
        uint64_t n_data = 0;

        for (uint64_t j = 0; j < file.size_bytes; j++)
            n_data += is_old_data(model, j);
        cr_expect_eq(model->files[0].header.n_bytes, file.size_bytes - n_data, "%s %s", kind->magic,
                     kind->family);
        gguf_close(model);
        free(file.data);
    }
}

Test(gguf_source, modification_time)
{
    struct model_bytes file = model_file_rich(&model_encodings[2]);
    const int descriptor = model_file_create(file.data, file.size_bytes);
    struct gguf_model *model = open_model(descriptor);
    const struct timespec times[2] = {{.tv_sec = 5}, {.tv_sec = 7, .tv_nsec = 11}};
    struct stat status;

    cr_assert_eq(fstat(descriptor, &status), 0);
    cr_expect_eq(gguf_model_modified(model).tv_sec, status.st_mtim.tv_sec);
    cr_assert_eq(futimens(descriptor, times), 0);
    cr_expect_eq(gguf_model_modified(model).tv_sec, status.st_mtim.tv_sec);
    cr_expect_eq(gguf_model_check(model), 0);
    cr_expect_eq(gguf_model_modified(model).tv_sec, 7);
    cr_expect_eq(gguf_model_modified(model).tv_nsec, 11);
    cr_assert_eq(ftruncate(descriptor, (off_t)file.size_bytes + 1), 0);
    cr_expect_eq(gguf_model_check(model), -ESTALE);
    gguf_close(model);
    close(descriptor);
    free(file.data);
}
