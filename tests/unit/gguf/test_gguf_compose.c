/* Models made of tensors of other models. */
#include "gguf/compose.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/gguf/model_file.h"

TestSuite(gguf_compose, .init = model_file_begin_test);

enum { ROW = 32, ROWS = 4, N = ROW * ROWS, Q8_0_BYTES = 34 };

/* The value of element i of tensor "a": exact in every type of these tests. */
static float value_of(uint64_t i)
{
    return (float)i - 20;
}

/* Tensors "a" (F32), "h" (F16, zeros) and "q" (Q8_0: block i has bytes i + 1). */
static struct model_bytes make_bytes(bool big_endian)
{
    static const uint64_t ne[] = {ROW, ROWS};
    struct gguf_writer *w = gguf_writer_open(3, big_endian);
    unsigned char a[4 * N], q[ROWS * Q8_0_BYTES];

    for (unsigned i = 0; i < N; i++) {
        const float value = value_of(i);
        unsigned char bytes[4];

        memcpy(bytes, &value, sizeof bytes);
        for (unsigned j = 0; j < 4; j++)
            a[4 * i + j] = bytes[big_endian ? 3 - j : j];
    }
    for (unsigned i = 0; i < sizeof q; i++)
        q[i] = (unsigned char)(i / Q8_0_BYTES + 1);
    gguf_writer_add_string(w, "general.architecture", "none");
    gguf_writer_add_tensor(w, "a", 1, 2, ne, DEQUANT_F32, a, sizeof a);
    gguf_writer_add_tensor(w, "h", 1, 2, ne, DEQUANT_F16, NULL, 2u * N);
    gguf_writer_add_tensor(w, "q", 1, 2, ne, DEQUANT_Q8_0, q, sizeof q);
    return model_file_finish(w);
}

static struct gguf_model *make_model(bool big_endian)
{
    const struct model_bytes bytes = make_bytes(big_endian);
    struct gguf_model *model = model_file_accept(bytes.data, bytes.size_bytes);

    free(bytes.data);
    return model;
}

static struct gguf_string text(const char *text)
{
    return (struct gguf_string){text, strlen(text)};
}

static struct gguf_tensor shape(const char *name, uint32_t type_id, uint64_t row, uint64_t rows)
{
    return (struct gguf_tensor){.name = text(name),
                                .type = dequant_type_by_id(type_id),
                                .n_dims = 2,
                                .ne = {row, rows, 1, 1}};
}

static struct gguf_piece piece_of(const struct gguf_model *model, unsigned tensor, uint64_t first,
                                  uint64_t n_elements)
{
    return (struct gguf_piece){.of = {.model = model, .tensor = &model->tensors[tensor]},
                               .first = first,
                               .n_elements = n_elements};
}

/* Compose one tensor of these pieces. */
static int compose(const struct gguf_model *base, struct gguf_tensor like,
                   const struct gguf_piece *pieces, size_t n_pieces, struct gguf_model **model,
                   struct gguf_report *report)
{
    struct gguf_composition made;
    struct gguf_item item;

    gguf_compose_begin(&made, base, report);
    item = gguf_begin_item(&made, &like, like.name);
    for (size_t i = 0; i < n_pieces; i++)
        gguf_append_piece(&made, &item, &pieces[i]);
    gguf_insert_item(&made, 0, item);
    cr_assert_eq(made.result, 0);
    return gguf_compose_end(&made, model);
}

static void append_whole(struct gguf_composition *made, const struct gguf_model *model,
                         unsigned tensor, const char *name)
{
    gguf_insert_item(made, made->n_items,
                     gguf_whole_item(made, model, &model->tensors[tensor], text(name)));
}

static struct gguf_model *accept(const struct gguf_model *base, struct gguf_tensor like,
                                 const struct gguf_piece *pieces, size_t n_pieces)
{
    struct gguf_report report = {0};
    struct gguf_model *model;

    cr_assert_eq(compose(base, like, pieces, n_pieces, &model, &report), 0, "%s",
                 report.first_error.message);
    return model;
}

static void refuse(const struct gguf_model *base, struct gguf_tensor like,
                   const struct gguf_piece *pieces, size_t n_pieces, const char *message)
{
    struct gguf_report report = {0};
    struct gguf_model *model;

    cr_expect_lt(compose(base, like, pieces, n_pieces, &model, &report), 0);
    cr_expect_null(model);
    cr_expect(strstr(report.first_error.message, message), "%s", report.first_error.message);
}

/* Return bytes of the tensor's data, read in two parts. */
static void *read_data(const struct gguf_model *model, uint64_t index)
{
    const struct gguf_tensor *tensor = &model->tensors[index];
    const struct gguf_file *file = &model->files[tensor->file_index];
    const size_t half = (size_t)tensor->size_bytes / 2 + 1;
    char *bytes = malloc((size_t)tensor->size_bytes);

    cr_assert_eq(gguf_file_read(file, tensor->file_offset, half, bytes), 0);
    cr_assert_eq(gguf_file_read(file, tensor->file_offset + half, (size_t)tensor->size_bytes - half,
                                bytes + half),
                 0);
    return bytes;
}

Test(gguf_compose, one_stored_piece_lies_in_its_file)
{
    struct gguf_model *base = make_model(false), *other = make_model(true), *model;
    struct gguf_report report = {0};
    struct gguf_composition made;

    gguf_compose_begin(&made, base, &report);
    append_whole(&made, base, 0, "new");
    append_whole(&made, other, 0, "a");
    append_whole(&made, base, 2, "rows");
    gguf_take_rows(&made, &made.items[2], 1, 1, 2);
    cr_assert_eq(gguf_compose_end(&made, &model), 0);
    model->owned = base;
    cr_expect_eq(model->n_files, 2);
    cr_expect_eq(model->n_keys, 1);
    cr_expect_eq(model->tensors[0].file_offset, base->tensors[0].file_offset);
    cr_expect_not(model->tensors[0].big_endian);
    cr_expect_eq(model->tensors[1].file_index, 1);
    cr_expect(model->tensors[1].big_endian);
    cr_expect_eq(model->tensors[2].ne[1], 2);
    cr_expect_eq(model->tensors[2].file_offset, base->tensors[2].file_offset + Q8_0_BYTES);
    gguf_close(model);
    gguf_close(other);
}

/* Each is taken from a place of its own, so that none extends the one before. */
Test(gguf_compose, the_pieces_of_a_model_are_limited)
{
    struct gguf_model *base = make_model(false);
    struct gguf_piece piece = piece_of(base, 0, 0, 1);
    struct gguf_report report = {0};
    struct gguf_composition made;
    struct gguf_item item;
    struct gguf_model *model;

    gguf_compose_begin(&made, base, &report);
    item = gguf_begin_item(&made, &base->tensors[0], text("x"));
    for (size_t i = 0; i < GGUF_MAX_PIECES; i++)
        gguf_append_piece(&made, &item, &piece);
    cr_expect_eq(made.result, 0);
    cr_expect_eq(made.n_pieces, 4194304u);
    gguf_append_piece(&made, &item, &piece);
    cr_expect_eq(gguf_compose_end(&made, &model), -EINVAL);
    cr_expect(strstr(report.first_error.message, "over 4194304 pieces"), "%s",
              report.first_error.message);
    gguf_close(base);
}

Test(gguf_compose, pieces_follow_one_another)
{
    for (int big_endian = 0; big_endian < 2; big_endian++) {
        struct gguf_model *base = make_model(big_endian);
        const struct gguf_piece pieces[] = {piece_of(base, 0, 3 * ROW, ROW),
                                            piece_of(base, 0, 1, ROW / 2),
                                            piece_of(base, 0, 1 + ROW, ROW / 2)};
        struct gguf_model *model = accept(base, shape("x", DEQUANT_F32, ROW, 2), pieces, 3);
        float *values = read_data(model, 0);

        cr_expect_not(model->tensors[0].big_endian);
        for (unsigned i = 0; i < 2 * ROW; i++) {
            const unsigned from = i < ROW             ? 3 * ROW + i
                                  : i < ROW + ROW / 2 ? 1 + i - ROW
                                                      : 1 + i - ROW / 2;

            cr_expect_eq(values[i], value_of(from), "%u", i);
        }
        free(values);
        gguf_close(model);
        gguf_close(base);
    }
}

Test(gguf_compose, quantized_rows_are_copied)
{
    struct gguf_model *base = make_model(false);
    const struct gguf_piece pieces[] = {piece_of(base, 2, 2 * ROW, ROW), piece_of(base, 2, 0, ROW)};
    struct gguf_model *model = accept(base, shape("x", DEQUANT_Q8_0, ROW, 2), pieces, 2);
    char *bytes = read_data(model, 0);

    for (unsigned i = 0; i < 2 * Q8_0_BYTES; i++)
        cr_expect_eq(bytes[i], i < Q8_0_BYTES ? 3 : 1);
    cr_expect_null(gguf_source_find_pieces(&model->files[1].source, 0).path);
    free(bytes);
    gguf_close(model);
    gguf_close(base);
}

Test(gguf_compose, pieces_are_decoded_mapped_and_made)
{
    static const float made[ROW] = {5, 6, 7};
    struct gguf_model *base = make_model(true);
    struct gguf_piece pieces[] = {
        piece_of(base, 1, 0, ROW), piece_of(base, 0, ROW, ROW), {.n_elements = ROW, .bytes = made}};
    struct gguf_model *model;
    float *values;

    pieces[0].of.map = pieces[1].of.map = GGUF_MAP_ADD;
    pieces[0].of.constant = pieces[1].of.constant = 1;
    model = accept(base, shape("x", DEQUANT_F32, ROW, 3), pieces, 3);
    values = read_data(model, 0);
    for (unsigned i = 0; i < ROW; i++) {
        cr_expect_eq(values[i], 1);
        cr_expect_eq(values[ROW + i], value_of(ROW + i) + 1);
        cr_expect_eq(values[2 * ROW + i], made[i]);
    }
    free(values);
    gguf_close(model);
    gguf_close(base);
}

Test(gguf_compose, a_change_of_a_file_is_found)
{
    struct model_bytes bytes = make_bytes(false);
    const int descriptor = model_file_create(bytes.data, bytes.size_bytes);
    struct gguf_report report = {0};
    struct gguf_model *base, *model;
    char byte;

    cr_assert_eq(model_file_open_descriptor(descriptor, &base, &report), 0);
    {
        const struct gguf_piece pieces[] = {piece_of(base, 2, 0, ROW), piece_of(base, 2, 0, ROW)};

        model = accept(base, shape("x", DEQUANT_Q8_0, ROW, 2), pieces, 2);
    }
    cr_expect_eq(gguf_model_check(model), 0);
    cr_assert_eq(ftruncate(descriptor, (off_t)bytes.size_bytes + 1), 0);
    cr_expect_eq(gguf_model_check(model), -ESTALE);
    cr_expect_eq(gguf_file_read(&model->files[1], 0, 1, &byte), -ESTALE);
    gguf_close(model);
    gguf_close(base);
    free(bytes.data);
    close(descriptor);
}

Test(gguf_compose, what_does_not_fit_is_refused)
{
    struct gguf_model *base = make_model(false);
    const struct gguf_piece all = piece_of(base, 0, 0, N), beyond = piece_of(base, 0, 1, N),
                            half = piece_of(base, 2, 0, ROW / 2);
    const struct gguf_piece halves[] = {half, half};
    struct gguf_report report = {0};
    struct gguf_composition made;
    struct gguf_model *model;

    refuse(base, shape("x", DEQUANT_F32, ROW, 2), &all, 1,
           "it has 64 elements, its parts have 128");
    refuse(base, shape("x", 13, ROW, ROWS), &all, 1, "block size");
    refuse(base, shape("x", 9, ROW, ROWS), &all, 1, "cannot be converted");
    refuse(base, shape("x", DEQUANT_F32, ROW, ROWS), &beyond, 1, "the tensor has fewer");
    refuse(base, shape("x", DEQUANT_Q8_0, ROW, 1), halves, 2, "no whole blocks");
    refuse(base, shape("x", DEQUANT_Q8_0, ROW - 1, 1), halves, 2, "block size");
    gguf_compose_begin(&made, base, &report);
    append_whole(&made, base, 0, "x");
    append_whole(&made, base, 1, "x");
    cr_expect_eq(gguf_compose_end(&made, &model), -EEXIST);
    gguf_close(base);
}
