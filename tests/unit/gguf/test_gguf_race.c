/*
 * Files that change while they are opened. Every byte is fetched at most once, so the parser never
 * sees two versions of a byte.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gguf/parse_file.h"
#include "tests/unit/fs/tree_file.h"
#include "tests/unit/gguf/old_file.h"

TestSuite(gguf_race, .init = model_file_begin_test, .timeout = 300);

/* ---- a source that changes between two reads ---- */

struct changing_bytes {
    const unsigned char *before, *after;
    size_t n_reads, change_at; /* `after` is served from read number `change_at` */
    unsigned char *n_fetched;  /* per byte; NULL: do not count */
};

static void close_nothing(struct gguf_source *source)
{
}

static int read_changing(const struct gguf_source *source, uint64_t offset, size_t n_bytes,
                         void *out)
{
    struct changing_bytes *changing = source->state;
    const unsigned char *bytes =
        changing->n_reads++ < changing->change_at ? changing->before : changing->after;

    cr_assert_leq(offset + n_bytes, source->size_bytes);
    memcpy(out, bytes + offset, n_bytes);
    for (size_t i = 0; changing->n_fetched && i < n_bytes; i++)
        changing->n_fetched[offset + i]++;
    return 0;
}

static const struct gguf_source_kind changing_kind = {.close = close_nothing,
                                                      .read = read_changing};

static int parse_changing(struct changing_bytes *changing, size_t size_bytes, const char *family,
                          struct gguf_model **model)
{
    const struct gguf_open_options options = {.family = family};
    struct gguf_file file = {.source = {.kind = &changing_kind,
                                        .path = strdup("/changing"),
                                        .size_bytes = size_bytes,
                                        .end_offset = size_bytes,
                                        .descriptor = -1,
                                        .state = changing},
                             .header = {.limit_bytes = GGUF_MAX_HEADER_BYTES}};
    struct gguf_report report = {0};

    changing->n_reads = 0;
    return gguf_parse_file(&file, &options, model, &report);
}

/* Visit all memory that a model points to, so that a sanitizer detects pointers it does not own. */
static void walk_array(const struct gguf_array *array)
{
    struct gguf_cursor cursor = gguf_array_begin(array);
    struct gguf_value element;

    for (uint64_t i = 0; i < array->n_elements; i++) {
        gguf_array_next(&cursor, array->element_type, &element);
        if (element.type == GGUF_ARRAY)
            walk_array(&element.array);
    }
    cr_assert_eq(gguf_cursor_left(&cursor), 0u);
}

static void walk_model(const struct gguf_model *model)
{
    for (uint64_t i = 0; i < model->n_keys; i++) {
        if (model->keys[i].value.type == GGUF_ARRAY)
            walk_array(&model->keys[i].value.array);
        cr_assert(gguf_value_equals(&model->keys[i].value, &model->keys[i].value));
    }
    for (uint64_t i = 0; i < model->n_tensors; i++)
        cr_assert_eq(gguf_string_compare(model->tensors[i].name, model->tensors[i].name), 0);
}

/* Return a file whose header is read in several steps. */
static struct model_bytes long_file(void)
{
    struct gguf_writer *w = gguf_writer_open(3, false);

    gguf_writer_add_array(w, "tokens", GGUF_WRITER_STRING, 6000);
    for (unsigned i = 0; i < 6000; i++)
        gguf_writer_string(w, "token token token", i % 17);
    gguf_writer_add_array(w, "nested", GGUF_WRITER_ARRAY, 3000);
    for (unsigned i = 0; i < 3000; i++) {
        gguf_writer_array(w, i % 2 ? GGUF_WRITER_U16 : GGUF_WRITER_BOOL, 4);
        gguf_writer_raw(w, "\1\0\1\0\1\0\1\0", i % 2 ? 8 : 4);
    }
    for (unsigned i = 0; i < 400; i++) {
        char name[64];
        const int length = snprintf(name, sizeof name, "tensor %u of some", i);

        gguf_writer_add_tensor(w, name, (size_t)length, 1, (uint64_t[]){32}, 24, NULL, 32);
    }
    return model_file_finish(w);
}

static void fill_random(unsigned char *bytes, size_t n_bytes, uint64_t seed)
{
    for (size_t i = 0; i < n_bytes; i++)
        bytes[i] = (unsigned char)model_file_random(&seed);
}

/* Change the file to `after` before its first read, its second, and so on. */
static void change_at_every_read(const struct model_bytes *bytes, const unsigned char *after)
{
    struct changing_bytes changing = {.before = bytes->data, .after = after};
    size_t n_reads = SIZE_MAX;

    for (changing.change_at = 0; changing.change_at <= n_reads; changing.change_at++) {
        struct gguf_model *model;

        if (parse_changing(&changing, bytes->size_bytes, NULL, &model) == 0)
            walk_model(model);
        if (changing.n_reads < changing.change_at)
            n_reads = changing.n_reads; /* the whole file was read before the change */
        gguf_close(model);
    }
}

static void change_in_many_ways(const struct model_bytes *bytes)
{
    unsigned char *after = malloc(bytes->size_bytes);

    cr_assert_not_null(after);
    memset(after, 0, bytes->size_bytes);
    change_at_every_read(bytes, after);
    memset(after, 0xff, bytes->size_bytes);
    change_at_every_read(bytes, after);
    for (uint64_t seed = 1; seed < 5; seed++) {
        fill_random(after, bytes->size_bytes, seed);
        change_at_every_read(bytes, after);
    }
    /* Replace all numbers by plausible others. */
    for (size_t i = 0; i < bytes->size_bytes; i++)
        after[i] = bytes->data[i] ? bytes->data[i] ^ 1 : 0;
    change_at_every_read(bytes, after);
    free(after);
}

Test(gguf_race, a_gguf_file_changes_between_reads)
{
    struct model_bytes bytes = long_file();

    change_in_many_ways(&bytes);
    free(bytes.data);
}

Test(gguf_race, old_files_change_between_reads)
{
    const struct old_file *file;

    for (size_t i = 0; (file = old_file_at(i)); i++) {
        struct model_bytes bytes = old_file_make(file);

        change_in_many_ways(&bytes);
        free(bytes.data);
    }
}

/* Return the number of bytes fetched. */
static size_t expect_fetched_once(const struct model_bytes *bytes, const char *family)
{
    unsigned char *n_fetched = calloc(bytes->size_bytes, 1);
    struct changing_bytes changing = {
        .before = bytes->data, .after = bytes->data, .change_at = SIZE_MAX, .n_fetched = n_fetched};
    struct gguf_model *model;
    size_t n = 0;

    cr_assert_not_null(n_fetched);
    cr_assert_eq(parse_changing(&changing, bytes->size_bytes, family, &model), 0);
    for (size_t i = 0; i < bytes->size_bytes; i++) {
        cr_assert_leq(n_fetched[i], 1, "byte %zu", i);
        n += n_fetched[i];
    }
    gguf_close(model);
    free(n_fetched);
    return n;
}

Test(gguf_race, no_byte_is_fetched_twice)
{
    struct model_bytes bytes = long_file();
    const struct old_file *file;

    expect_fetched_once(&bytes, NULL);
    free(bytes.data);
    for (size_t i = 0; (file = old_file_at(i)); i++) {
        bytes = old_file_make(file);
        expect_fetched_once(&bytes, file->family);
        free(bytes.data);
    }
}

/* Tensor data are not part of the header. */
Test(gguf_race, data_are_not_fetched)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct model_bytes bytes;

    gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){1 << 20}, 24, NULL, 1 << 20);
    bytes = model_file_finish(w);
    cr_expect_leq(expect_fetched_once(&bytes, NULL), 8u << 10);
    free(bytes.data);
}

/* ---- a thread that writes to the file ---- */

struct writer {
    int descriptor;
    const unsigned char *before, *after;
    size_t n_bytes;
    off_t offset;
    atomic_bool should_stop;
};

static void *rewrite(void *argument)
{
    struct writer *writer = argument;

    while (!writer->should_stop) {
        /* Without this check, a write that fails would make the test pass. */
        if (pwrite(writer->descriptor, writer->after, writer->n_bytes, writer->offset) < 0 ||
            pwrite(writer->descriptor, writer->before, writer->n_bytes, writer->offset) < 0)
            abort();
    }
    return NULL;
}

/* Open the file n times while it changes. Returns how many times it was accepted. */
static unsigned open_while_it_changes(struct writer *writer, unsigned n)
{
    pthread_t thread;
    unsigned n_accepted = 0;

    cr_assert_eq(pthread_create(&thread, NULL, rewrite, writer), 0);
    for (unsigned i = 0; i < n; i++) {
        struct gguf_report report = {0};
        struct gguf_model *model;

        if (model_file_open_descriptor(writer->descriptor, &model, &report) == 0) {
            walk_model(model);
            n_accepted++;
        } else {
            cr_assert_gt(report.n_errors, 0u);
        }
        gguf_close(model);
    }
    writer->should_stop = true;
    pthread_join(thread, NULL);
    return n_accepted;
}

/*
 * The thread fills half of a token with spaces, which take three bytes each in the GGUF vocabulary.
 */
Test(gguf_race, a_token_of_an_old_file_changes)
{
    enum { TOKEN_BYTES = 3 << 20, START = 4 + 4 + 7 * 4 };
    static const uint32_t hyperparameters[] = {3, 4, 32, 32, 1, 1, 32, 0};
    const size_t size_bytes = START + 4 * 8 + TOKEN_BYTES;
    unsigned char *bytes = calloc(size_bytes, 1), *spaces = malloc(TOKEN_BYTES / 2);
    const uint32_t length = TOKEN_BYTES;
    struct writer writer = {.n_bytes = TOKEN_BYTES / 2};
    unsigned n_accepted;

    cr_assert(bytes && spaces);
    memcpy(bytes, "tjgg", 4);
    memcpy(bytes + 4, hyperparameters, sizeof hyperparameters);
    memcpy(bytes + START + 3 * 8, &length, sizeof length);
    memset(bytes + START + 3 * 8 + 4, 'a', TOKEN_BYTES);
    memset(spaces, ' ', TOKEN_BYTES / 2);
    writer.descriptor = model_file_create(bytes, size_bytes);
    writer.before = bytes + START + 3 * 8 + 4;
    writer.after = spaces;
    writer.offset = START + 3 * 8 + 4;
    n_accepted = open_while_it_changes(&writer, 20);
    cr_expect_eq(n_accepted, 20u); /* any mixture is a valid token */
    close(writer.descriptor);
    free(bytes);
    free(spaces);
}

Test(gguf_race, numbers_change_in_every_encoding)
{
    for (size_t i = 0; i < MODEL_N_ENCODINGS; i++) {
        struct model_bytes bytes = model_file_rich(&model_encodings[i]);
        unsigned char *after = malloc(bytes.size_bytes);
        struct writer writer = {.before = bytes.data, .after = after};

        cr_assert_not_null(after);
        for (size_t j = 0; j < bytes.size_bytes; j++)
            after[j] = j >= 24 && bytes.data[j] ? bytes.data[j] ^ 1 : bytes.data[j];
        writer.n_bytes = bytes.size_bytes;
        writer.descriptor = model_file_create(bytes.data, bytes.size_bytes);
        open_while_it_changes(&writer, 500);
        close(writer.descriptor);
        free(after);
        free(bytes.data);
    }
}
