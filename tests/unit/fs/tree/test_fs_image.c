/* Images: every slice equals that part of the whole file, and a source that changes is an error. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dequant/kernels.h"
#include "dequant/rows.h"
#include "fs/tree/core/text.h"
#include "fs/tree/data/tensor_segments.h"
#include "tests/unit/gguf/model_file.h"

TestSuite(fs_image, .init = model_file_begin_test);

/* Guard bytes before and after a slice. */
enum { GUARD_BYTES = 16, GUARD = 0xa5 };

static const struct gguf_tensor *tensor_of(const struct gguf_model *model, const char *name)
{
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        if (gguf_string_equals(model->tensors[i].name, name))
            return &model->tensors[i];
    }
    cr_assert_fail("no tensor %s", name);
    return NULL;
}

static void write_alphabet(const struct fs_tree *tree, const void *subject, struct fs_sink *sink)
{
    for (char letter = 'a'; letter <= 'z'; letter++)
        fs_sink_write(sink, &letter, 1);
}

/* Write five bytes, and fail with *subject unless it is 0. */
static void fail_to_write(const struct fs_tree *tree, const void *subject, struct fs_sink *sink)
{
    fs_sink_literal(sink, "abcde");
    if (*(const int *)subject != 0)
        fs_sink_fail(sink, *(const int *)subject);
}

/* The expected contents of an image. */
struct whole {
    char *bytes;
    size_t size_bytes;
};

static void expect_bytes(struct whole *whole, const void *bytes, size_t n_bytes)
{
    whole->bytes = realloc(whole->bytes, whole->size_bytes + n_bytes + 1);
    cr_assert_not_null(whole->bytes);
    memcpy(whole->bytes + whole->size_bytes, bytes, n_bytes);
    whole->size_bytes += n_bytes;
}

/* Append the values of a tensor, decoded in one call. */
static void expect_values(struct whole *whole, const struct gguf_model *model,
                          const struct gguf_tensor *tensor)
{
    const uint8_t *data = model->files[0].source.mapping + tensor->file_offset;
    const size_t n_blocks = tensor->n_elements / tensor->type->block_elements;
    float *values = malloc(tensor->n_elements * sizeof *values + 1);
    uint8_t *swapped = malloc(tensor->size_bytes + 1);

    cr_assert(values && swapped);
    if (tensor->big_endian && dequant_has_byte_order(tensor->type))
        dequant_swap_blocks(tensor->type, data, swapped, n_blocks);
    else
        memcpy(swapped, data, tensor->size_bytes);
    dequant_decode_elements(tensor->type, (struct dequant_shape){tensor->ne[0], tensor->n_elements},
                            swapped, 0, tensor->n_elements, values);
    expect_bytes(whole, values, tensor->n_elements * sizeof *values);
    free(values);
    free(swapped);
}

/* Each of these functions adds a segment to the image and its expected contents to the whole. */

static void add_literal(struct fs_image *image, struct whole *whole, const char *literal)
{
    cr_assert_eq(fs_image_add_made(image, strdup(literal), strlen(literal)), 0);
    expect_bytes(whole, literal, strlen(literal));
}

static void add_alphabet(struct fs_image *image, struct whole *whole)
{
    cr_assert_eq(fs_image_add_text(image, write_alphabet, NULL, NULL, NULL), 0);
    expect_bytes(whole, "abcdefghijklmnopqrstuvwxyz", 26);
}

static void add_data(struct fs_image *image, struct whole *whole, const struct gguf_tensor *tensor)
{
    cr_assert_eq(fs_image_add_data(image, tensor), 0);
    expect_bytes(whole, image->model->files[0].source.mapping + tensor->file_offset,
                 tensor->size_bytes);
}

static void add_values(struct fs_image *image, struct whole *whole,
                       const struct gguf_tensor *tensor)
{
    cr_assert_eq(fs_image_add_elements(image, tensor, dequant_type_by_id(DEQUANT_F32)), 0);
    expect_values(whole, image->model, tensor);
}

/* Read a slice to `out`, between guard bytes, and compare. */
static void check_slice(const struct fs_image *image, const struct whole *whole, uint64_t offset,
                        size_t length, char *out)
{
    size_t expected = 0;

    if (offset < whole->size_bytes)
        expected = whole->size_bytes - offset < length ? whole->size_bytes - offset : length;
    memset(out - GUARD_BYTES, GUARD, GUARD_BYTES);
    memset(out + expected, GUARD, GUARD_BYTES);
    cr_assert_eq(fs_image_read(image, offset, length, out), (ssize_t)expected, "%zu bytes from %zu",
                 length, (size_t)offset);
    cr_assert(expected == 0 || memcmp(out, whole->bytes + offset, expected) == 0,
              "%zu bytes from %zu", length, (size_t)offset);
    for (size_t i = 0; i < GUARD_BYTES; i++) {
        cr_assert_eq((unsigned char)out[(ssize_t)i - GUARD_BYTES], GUARD);
        cr_assert_eq((unsigned char)out[expected + i], GUARD);
    }
}

/* Build an image with two segments of each kind. Tensor segments are not aligned to 4 bytes. */
static void build_small(struct fs_image *image, struct whole *whole, const struct gguf_model *model)
{
    fs_image_begin(image, model);
    add_literal(image, whole, "{\"a\":");
    add_values(image, whole, tensor_of(model, "f16"));
    add_alphabet(image, whole);
    add_data(image, whole, tensor_of(model, "q8"));
    add_literal(image, whole, "");
    add_values(image, whole, tensor_of(model, "empty"));
    add_data(image, whole, tensor_of(model, "empty"));
    add_values(image, whole, tensor_of(model, "q8"));
    add_alphabet(image, whole);
    add_data(image, whole, tensor_of(model, "f16"));
    add_literal(image, whole, "}\n");
    cr_assert_eq(image->size_bytes, whole->size_bytes);
}

/* Add a tensor with one group of rows. */
static void add_random_tensor(struct gguf_writer *w, const char *name, uint32_t type_id,
                              uint64_t row_elements)
{
    const struct dequant_type *type = dequant_type_by_id(type_id);
    const uint64_t ne[] = {row_elements, type->interleave_rows};
    uint64_t state = type_id, size_bytes;
    unsigned char *data;

    cr_assert_eq(dequant_rows_bytes(type, ne[0], ne[1], &size_bytes), 0);
    data = malloc(size_bytes + 1);
    cr_assert_not_null(data);
    for (size_t i = 0; i < size_bytes; i++)
        data[i] = (unsigned char)(model_file_random(&state) >> 32);
    gguf_writer_add_tensor(w, name, strlen(name), ne[1] > 1 ? 2 : 1, ne, type_id, data, size_bytes);
    free(data);
}

Test(fs_image, every_slice_of_a_small_image)
{
    for (int big_endian = 0; big_endian < 2; big_endian++) {
        struct gguf_writer *w = gguf_writer_open(3, big_endian);
        struct whole whole = {0};
        struct gguf_model *model;
        struct fs_image image;
        char *out;

        add_random_tensor(w, "q8", 8, 64);
        add_random_tensor(w, "f16", 1, 3);
        add_random_tensor(w, "empty", 0, 0);
        model = model_file_make(w);
        build_small(&image, &whole, model);
        cr_assert_eq(image.size_bytes, 5u + 12 + 26 + 68 + 256 + 26 + 6 + 2);

        out = malloc(2 * GUARD_BYTES + whole.size_bytes + 8);
        for (uint64_t offset = 0; offset <= whole.size_bytes + 2; offset++) {
            for (size_t length = 0; length <= whole.size_bytes + 2 - offset; length++)
                check_slice(&image, &whole, offset, length,
                            out + GUARD_BYTES + (offset + length / 2) % 4);
        }
        free(out);
        free(whole.bytes);
        fs_image_free(&image);
        gguf_close(model);
    }
}

Test(fs_image, slices_past_the_end)
{
    static const uint64_t far[] = {1ull << 32, 1ull << 62, INT64_MAX, UINT64_MAX - 1, UINT64_MAX};
    struct gguf_model *model = model_file_make(gguf_writer_open(3, false));
    struct fs_image image;
    char out[16];

    fs_image_begin(&image, model);
    cr_expect_eq(fs_image_read(&image, 0, sizeof out, out), 0);
    cr_assert_eq(fs_image_add_made(&image, strdup("12345"), 5), 0);
    for (size_t i = 0; i < COUNT(far); i++) {
        cr_expect_eq(fs_image_read(&image, far[i], sizeof out, out), 0);
        cr_expect_eq(fs_image_read(&image, 3, (size_t)far[i], out), 2);
        cr_expect_arr_eq(out, "45", 2);
    }
    fs_image_free(&image);
    gguf_close(model);
}

Test(fs_image, random_slices_of_a_big_image)
{
    /* Every type with a decoder, two thousand blocks or so each. */
    for (int big_endian = 0; big_endian < 2; big_endian++) {
        struct gguf_writer *w = gguf_writer_open(3, big_endian);
        struct whole whole = {0};
        struct gguf_model *model;
        struct fs_image image;
        uint64_t state = 7;
        char *out;

        for (size_t i = 0; i < dequant_type_count(); i++) {
            const struct dequant_type *type = dequant_type_at(i);

            if (dequant_is_decodable(type))
                add_random_tensor(w, type->name, type->id, 5120);
        }
        model = model_file_make(w);
        fs_image_begin(&image, model);
        for (uint64_t i = 0; i < model->n_tensors; i++) {
            add_literal(&image, &whole, &"abc"[i % 3]);
            add_values(&image, &whole, &model->tensors[i]);
            add_data(&image, &whole, &model->tensors[i]);
            add_alphabet(&image, &whole);
        }
        out = malloc(2 * GUARD_BYTES + whole.size_bytes + 8);
        check_slice(&image, &whole, 0, whole.size_bytes, out + GUARD_BYTES);
        check_slice(&image, &whole, 0, whole.size_bytes, out + GUARD_BYTES + 1);
        for (int i = 0; i < 4000; i++) {
            const uint64_t offset = model_file_random(&state) % whole.size_bytes;
            const size_t length = model_file_random(&state) % (i % 4 ? 5000 : 40);

            check_slice(&image, &whole, offset, length,
                        out + GUARD_BYTES + model_file_random(&state) % 4);
        }
        free(out);
        free(whole.bytes);
        fs_image_free(&image);
        gguf_close(model);
    }
}

Test(fs_image, images_larger_than_a_file_are_refused)
{
    struct gguf_model *model = model_file_make(gguf_writer_open(3, false));
    struct fs_image image;
    struct gguf_tensor huge = {
        .type = dequant_type_by_id(24), .n_elements = 1ull << 61, .size_bytes = 1ull << 61};

    fs_image_begin(&image, model);
    cr_expect_eq(fs_image_add_elements(&image, &huge, dequant_type_by_id(DEQUANT_F32)), -EOVERFLOW);
    huge.n_elements = 1ull << 62; /* 4 × 2^62 bytes wrap to 0 */
    cr_expect_eq(fs_image_add_elements(&image, &huge, dequant_type_by_id(DEQUANT_F32)), -EOVERFLOW);
    cr_expect_eq(image.size_bytes, 0u);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(fs_image_add_data(&image, &huge), 0);
    cr_expect_eq(fs_image_add_data(&image, &huge), -EOVERFLOW);
    cr_expect_eq(image.size_bytes, 3ull << 61);
    fs_image_free(&image);
    gguf_close(model);
}

Test(fs_image, errors_of_a_text_writer)
{
    struct gguf_model *model = model_file_make(gguf_writer_open(3, false));
    int error = -ENOMEM;
    struct fs_image image;
    char out[64];

    fs_image_begin(&image, model);
    cr_assert_eq(fs_image_add_made(&image, strdup("12345"), 5), 0);
    cr_expect_eq(fs_image_add_text(&image, fail_to_write, NULL, &error, NULL), -ENOMEM);
    cr_expect_eq(image.size_bytes, 5u);
    error = 0;
    cr_expect_eq(fs_image_add_text(&image, fail_to_write, NULL, &error, NULL), 0);
    cr_expect_eq(image.size_bytes, 10u);
    cr_expect_eq(fs_image_read(&image, 0, 12, out), 10);
    cr_expect_arr_eq(out, "12345abcde", 10);
    fs_image_free(&image);
    gguf_close(model);
}

Test(fs_image, reads_of_a_truncated_source_fail)
{
    for (int big_endian = 0; big_endian < 2; big_endian++) {
        struct gguf_writer *w = gguf_writer_open(3, big_endian);
        struct gguf_report report = {0};
        struct fs_image raw, values;
        static char out[4 * 40000 + 1];
        struct model_bytes bytes;
        struct gguf_model *model;
        int descriptor;

        add_random_tensor(w, "t", 0, 40000);
        bytes = model_file_finish(w);
        descriptor = model_file_create(bytes.data, bytes.size_bytes);
        cr_assert_eq(model_file_open_descriptor(descriptor, &model, &report), 0);
        fs_image_begin(&raw, model);
        cr_assert_eq(fs_image_add_data(&raw, &model->tensors[0]), 0);
        fs_image_begin(&values, model);
        cr_assert_eq(
            fs_image_add_elements(&values, &model->tensors[0], dequant_type_by_id(DEQUANT_F32)), 0);

        cr_assert_eq(ftruncate(descriptor, 64 << 10), 0);
        /* Several faults in a row: the handler must stay usable. */
        for (int i = 0; i < 3; i++) {
            cr_expect_eq(fs_image_read(&raw, 0, 160000, out), -EIO);
            cr_expect_eq(fs_image_read(&raw, 159999, 1, out), -EIO);
            cr_expect_eq(fs_image_read(&raw, 1000, 4000, out), 4000);
            cr_expect_arr_eq(out, bytes.data + model->tensors[0].file_offset + 1000, 4000);
            cr_expect_eq(fs_image_read(&values, 0, 160000, out), -EIO);
            cr_expect_eq(fs_image_read(&values, 0, 160000, out + 1), -EIO);
            cr_expect_eq(fs_image_read(&values, 150001, 2, out), -EIO);
            cr_expect_eq(fs_image_read(&values, 0, 4000, out), 4000);
        }
        cr_assert_eq(ftruncate(descriptor, 0), 0);
        cr_expect_eq(fs_image_read(&raw, 0, 1, out), -EIO);
        /* A file with another header is stale; one with the same header and time is not. */
        bytes.data[model->tensors[0].info_offset + 8] = 'u';
        cr_assert_eq(pwrite(descriptor, bytes.data, bytes.size_bytes, 0),
                     (ssize_t)bytes.size_bytes);
        cr_expect_eq(fs_image_read(&raw, 0, 160000, out), -ESTALE);
        cr_expect_eq(fs_image_read(&values, 8, 8, out), -ESTALE);
        bytes.data[model->tensors[0].info_offset + 8] = 't';
        model_file_restore(descriptor, bytes, model);
        cr_expect_eq(fs_image_read(&raw, 0, 160000, out), 160000);
        cr_expect_arr_eq(out, bytes.data + model->tensors[0].file_offset, 160000);

        fs_image_free(&raw);
        fs_image_free(&values);
        gguf_close(model);
        close(descriptor);
        free(bytes.data);
    }
}

/*
 * The kernel maps zeros from the end of a file to the end of its last page. They must not be
 * served.
 */
Test(fs_image, a_source_truncated_inside_a_page)
{
    for (int big_endian = 0; big_endian < 2; big_endian++) {
        struct gguf_writer *w = gguf_writer_open(3, big_endian);
        struct gguf_report report = {0};
        struct fs_image raw, values;
        struct model_bytes bytes;
        struct gguf_model *model;
        uint64_t start;
        char out[1024];
        int descriptor;

        add_random_tensor(w, "t", 8, 256); /* eight blocks of 34 bytes */
        bytes = model_file_finish(w);
        descriptor = model_file_create(bytes.data, bytes.size_bytes);
        cr_assert_eq(model_file_open_descriptor(descriptor, &model, &report), 0);
        fs_image_begin(&raw, model);
        cr_assert_eq(fs_image_add_data(&raw, &model->tensors[0]), 0);
        fs_image_begin(&values, model);
        cr_assert_eq(
            fs_image_add_elements(&values, &model->tensors[0], dequant_type_by_id(DEQUANT_F32)), 0);

        start = model->tensors[0].file_offset;
        for (size_t left = 1; left < 272; left++) {
            const size_t n = left / 34 * 128; /* bytes of the values of complete blocks */

            cr_assert_eq(ftruncate(descriptor, (off_t)(start + left)), 0);
            cr_assert_eq(fs_image_read(&raw, 0, left, out), (ssize_t)left);
            cr_assert_eq(fs_image_read(&raw, left - 1, 1, out), 1);
            cr_assert_eq(fs_image_read(&raw, 0, left + 1, out), -EIO);
            cr_assert_eq(fs_image_read(&raw, left, 1, out), -EIO);
            cr_assert_eq(fs_image_read(&values, 0, n, out), (ssize_t)n);
            cr_assert_eq(fs_image_read(&values, 0, n + 1, out), -EIO);
            cr_assert_eq(fs_image_read(&values, n, 1, out), -EIO);
            cr_assert(n == 0 || fs_image_read(&values, n - 1, 1, out) == 1);
            model_file_restore(descriptor, bytes, model);
        }
        fs_image_free(&raw);
        fs_image_free(&values);
        gguf_close(model);
        close(descriptor);
        free(bytes.data);
    }
}

/* Rows with headers are decoded one by one, but the source is checked once. */
Test(fs_image, rows_truncated_inside_a_page)
{
    static const struct {
        uint32_t type_id;
        size_t whole_rows; /* that can be read without the last byte */
    } types[] = {{144 /* IQ4_KS */, 3}, {344 /* IQ4_KS_R4 */, 0}};

    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        static char out[4 * 512 * sizeof(float)];
        enum { ROW_BYTES_OUT = sizeof out / 4, DATA_BYTES = 4 * (4 + 2 * 136) };
        struct gguf_writer *w = gguf_writer_open(3, false);
        struct gguf_report report = {0};
        struct model_bytes bytes;
        struct gguf_model *model;
        struct fs_image values;
        int descriptor;

        gguf_writer_add_tensor(w, "t", 1, 2, (uint64_t[]){512, 4}, types[i].type_id, NULL,
                               DATA_BYTES);
        bytes = model_file_finish(w);
        descriptor = model_file_create(bytes.data, bytes.size_bytes);
        cr_assert_eq(model_file_open_descriptor(descriptor, &model, &report), 0);
        fs_image_begin(&values, model);
        cr_assert_eq(
            fs_image_add_elements(&values, &model->tensors[0], dequant_type_by_id(DEQUANT_F32)), 0);
        cr_expect_eq(fs_image_read(&values, 0, sizeof out, out), sizeof out);
        cr_assert_eq(ftruncate(descriptor, (off_t)(model->tensors[0].file_offset + DATA_BYTES - 1)),
                     0);
        for (size_t row = 0; row < 4; row++) {
            const bool is_whole = row < types[i].whole_rows;

            cr_expect_eq(fs_image_read(&values, row * ROW_BYTES_OUT, ROW_BYTES_OUT, out),
                         is_whole ? ROW_BYTES_OUT : -EIO, "%zu", row);
        }
        /* All of the first row, and of the second row one number, which ends earlier in the file.
         */
        cr_expect_eq(fs_image_read(&values, 0, ROW_BYTES_OUT + 4, out),
                     types[i].whole_rows > 0 ? ROW_BYTES_OUT + 4 : -EIO);
        fs_image_free(&values);
        gguf_close(model);
        close(descriptor);
        free(bytes.data);
    }
}
