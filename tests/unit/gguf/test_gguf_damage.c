/* Files with several errors, cut files, and files with any byte changed. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/gguf/model_file.h"

TestSuite(gguf_damage, .init = model_file_begin_test);

enum { HEADER_BYTES = 24 }; /* in versions 2 and 3 */

/* Open a file that must be refused. Returns the number of errors and stores the first. */
static size_t refuse(struct gguf_writer *w, size_t cut_bytes, struct model_notes *notes,
                     struct gguf_finding *first)
{
    struct gguf_report report = model_file_report(notes);
    struct model_bytes bytes = model_file_finish(w);
    struct gguf_model *model;
    const int result = model_file_open(bytes.data, bytes.size_bytes - cut_bytes, &model, &report);

    cr_expect_lt(result, 0);
    cr_expect_null(model);
    cr_expect_eq(report.first_error.code, result);
    *first = report.first_error;
    free(bytes.data);
    return report.n_errors;
}

Test(gguf_damage, all_errors_are_reported)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    const uint64_t ne = 1000;
    struct gguf_finding first;
    struct model_notes notes;

    gguf_writer_add_u8(w, "twice", 1);
    gguf_writer_add_u8(w, "twice", 2);
    gguf_writer_add_tensor(w, "same", 4, 1, &ne, 0, NULL, 4);
    gguf_writer_add_tensor(w, "same", 4, 1, &ne, 0, NULL, 4);
    gguf_writer_add_tensor(w, "odd", 3, 1, &ne, 8, NULL, 4);
    cr_expect_eq(refuse(w, 0, &notes, &first), 5u);
    cr_expect_eq(first.code, -EEXIST);
    cr_expect_eq(first.file_offset, HEADER_BYTES + 8u + 5 + 4 + 1);
}

Test(gguf_damage, two_duplicates_are_two_errors)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct gguf_finding first;
    struct model_notes notes;

    for (uint8_t i = 0; i < 3; i++)
        gguf_writer_add_u8(w, "k", i);
    cr_expect_eq(refuse(w, 0, &notes, &first), 2u);
    cr_expect_eq(first.file_offset, HEADER_BYTES + 14u);
    cr_expect_not_null(strstr(first.message, "byte 24"), "%s", first.message);
}

Test(gguf_damage, missing_data_are_reported_per_tensor_and_in_total)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    const uint64_t ne = 64;
    struct gguf_finding first;
    struct model_notes notes;

    gguf_writer_add_tensor(w, "a", 1, 1, &ne, 24, NULL, 64);
    gguf_writer_add_tensor(w, "b", 1, 1, &ne, 24, NULL, 64);
    gguf_writer_add_tensor(w, "c", 1, 1, &ne, 24, NULL, 64);
    /* The data section starts at byte 128. */
    cr_expect_eq(refuse(w, 65, &notes, &first), 2u);
    cr_expect_not_null(strstr(first.message, "\"b\""), "%s", first.message);
    cr_expect_not_null(strstr(first.message, "1 of its 64 bytes"), "%s", first.message);
    cr_assert_eq(notes.count, 1u);
    cr_expect_not_null(strstr(notes.last.message, "at least 320 bytes and has 255: 65 are missing"),
                       "%s", notes.last.message);
    cr_expect_not_null(strstr(notes.last.message, "2 of 3 tensors"), "%s", notes.last.message);
}

Test(gguf_damage, every_overlap_is_reported)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct gguf_finding first;
    struct model_notes notes;

    gguf_writer_add_tensor(w, "s", 1, 1, (uint64_t[]){128}, 24, NULL, 128);
    gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){32}, 24, NULL, 32);
    gguf_writer_override_offset(w, 32);
    gguf_writer_add_tensor(w, "u", 1, 1, (uint64_t[]){32}, 24, NULL, 32);
    gguf_writer_override_offset(w, 96);
    cr_expect_eq(refuse(w, 0, &notes, &first), 2u);
    cr_expect_not_null(strstr(first.message, "\"t\""), "%s", first.message);
    cr_expect_not_null(strstr(first.message, "\"s\""), "%s", first.message);
}

/* Write tensor "k" of that type at offset 0 and tensor "u" of unknown type at offset `at`. */
static struct gguf_writer *before_unknown(uint32_t type_id, uint64_t at, bool is_unknown_first)
{
    struct gguf_writer *w = gguf_writer_open(3, false);

    for (int i = 0; i < 2; i++) {
        const bool is_unknown = (i == 0) == is_unknown_first;

        gguf_writer_add_tensor(w, is_unknown ? "u" : "k", 1, 1, (uint64_t[]){64},
                               is_unknown ? 999 : type_id, NULL, 64);
        gguf_writer_override_offset(w, is_unknown ? at : 0);
    }
    return w;
}

Test(gguf_damage, data_that_run_into_a_tensor_of_unknown_type)
{
    struct gguf_finding first;
    struct model_notes notes;
    struct gguf_model *model;

    for (int i = 0; i < 8; i++) {
        const uint32_t type_id = i < 4 ? 24 : 37; /* one that ggml removed, of 36 bytes */

        cr_expect_eq(refuse(before_unknown(type_id, i % 4 < 2 ? 32 : 0, i % 2), 0, &notes, &first),
                     1u);
        cr_expect_eq(first.code, -EINVAL);
        cr_expect_not_null(strstr(first.message, "\"u\": its data at byte"), "%s", first.message);
        cr_expect_not_null(strstr(first.message, "\"k\""), "%s", first.message);
    }

    /* One that ends where the other starts. */
    model = model_file_make(before_unknown(24, 64, false));
    cr_expect_eq(model->n_tensors, 2u);
    gguf_close(model);
}

/* Two tensors that have data cannot start at the same byte, even if their sizes are unknown. */
Test(gguf_damage, tensors_of_unknown_type_at_one_offset)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct gguf_finding first;
    struct model_notes notes;

    gguf_writer_add_tensor(w, "a", 1, 1, (uint64_t[]){64}, 998, NULL, 64);
    gguf_writer_add_tensor(w, "empty", 5, 1, (uint64_t[]){0}, 999, NULL, 0);
    gguf_writer_override_offset(w, 0);
    gguf_writer_add_tensor(w, "b", 1, 1, (uint64_t[]){64}, 999, NULL, 64);
    gguf_writer_override_offset(w, 0);
    cr_expect_eq(refuse(w, 0, &notes, &first), 1u);
    cr_expect_not_null(strstr(first.message, "\"b\": its data at byte"), "%s", first.message);
    cr_expect_not_null(strstr(first.message, "\"a\""), "%s", first.message);
}

/* Cut in the middle, a file has tensors that start behind its end. */
Test(gguf_damage, cut_files_of_unknown_types)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct gguf_finding first;
    struct model_notes notes;

    for (unsigned i = 0; i < 10; i++)
        gguf_writer_add_tensor(w, (char[]){(char)('a' + i), 0}, 1, 1, (uint64_t[]){32}, 900 + i,
                               NULL, 64);
    cr_expect_eq(refuse(w, 4 * 64, &notes, &first), 4u);
    cr_expect_not_null(strstr(first.message, "\"g\": its data start at byte"), "%s", first.message);
    cr_expect_not_null(strstr(notes.last.message, "4 of 10 tensors"), "%s", notes.last.message);
}

/* The extents of unknown types reach to the next tensor with data, or to the end of the file. */
Test(gguf_damage, extents_of_unknown_types)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct gguf_model *model;

    gguf_writer_add_tensor(w, "a", 1, 1, (uint64_t[]){8}, 999, NULL, 40);
    gguf_writer_add_tensor(w, "empty", 5, 1, (uint64_t[]){0}, 0, NULL, 0);
    gguf_writer_override_offset(w, 32);
    gguf_writer_add_tensor(w, "known", 5, 1, (uint64_t[]){32}, 24, NULL, 32);
    gguf_writer_add_tensor(w, "none", 4, 1, (uint64_t[]){0}, 999, NULL, 0);
    gguf_writer_add_tensor(w, "last", 4, 1, (uint64_t[]){8}, 999, NULL, 100);
    model = model_file_make(w);
    cr_expect_eq(model->tensors[0].extent_bytes, 64u);
    cr_expect_eq(model->tensors[2].extent_bytes, 0u);
    cr_expect_eq(model->tensors[3].extent_bytes, 0u);
    cr_expect_eq(model->tensors[4].extent_bytes,
                 model->files[0].source.size_bytes - model->tensors[4].file_offset);
    cr_expect_geq(model->tensors[4].extent_bytes, 100u);
    gguf_close(model);
}

/* Store the offsets where the tensor table and the last tensor's data end. */
static void measure(const struct model_bytes *bytes, unsigned length_bytes, size_t *table_end,
                    size_t *data_end)
{
    struct gguf_model *model = model_file_accept(bytes->data, bytes->size_bytes);
    const struct gguf_tensor *last = &model->tensors[model->n_tensors - 1];

    *table_end = last->info_offset + length_bytes + last->name.length_bytes + 4 +
                 (uint64_t)last->n_dims * length_bytes + 4 + 8;
    *data_end = 0;
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        const struct gguf_tensor *tensor = &model->tensors[i];

        /* If the type is unknown, the tensor's first byte must be there. */
        const uint64_t n_bytes = tensor->type ? tensor->size_bytes : tensor->n_elements > 0;

        if (n_bytes > 0 && tensor->file_offset + n_bytes > *data_end)
            *data_end = tensor->file_offset + n_bytes;
    }
    gguf_close(model);
}

/* The next size of a cut file; `end`, the whole, is always one. */
static size_t next_cut(size_t size_bytes, size_t end)
{
    const size_t next = model_file_next_damage(size_bytes);

    return size_bytes < end && next > end ? end : next;
}

Test(gguf_damage, cut_at_every_length)
{
    for (size_t i = 0; i < MODEL_N_ENCODINGS; i++) {
        struct model_bytes bytes = model_file_rich(&model_encodings[i]);
        size_t table_end, data_end;

        measure(&bytes, model_encodings[i].length_bytes, &table_end, &data_end);
        for (size_t size_bytes = 0; size_bytes <= data_end;
             size_bytes = next_cut(size_bytes, data_end)) {
            struct gguf_report report = {0};
            struct gguf_model *model;
            const int result = model_file_open(bytes.data, size_bytes, &model, &report);

            if (size_bytes == data_end) {
                cr_assert_eq(result, 0, "%s", report.first_error.message);
                gguf_close(model);
                break;
            }
            cr_assert_eq(result, size_bytes < 4 ? -EINVAL : -ENODATA, "%zu bytes", size_bytes);
            cr_assert_null(model);
            cr_assert_geq(report.n_errors, 1u);
            if (size_bytes >= table_end)
                continue;
            cr_assert_eq(report.n_errors, 1u, "%zu bytes", size_bytes);
            if (size_bytes > 0)
                cr_assert_leq(report.first_error.file_offset, size_bytes);
        }
        free(bytes.data);
    }
}

Test(gguf_damage, any_byte_changed)
{
    /* Accepted tensors lie within the file. A refusal reports an error. */
    for (size_t i = 0; i < MODEL_N_ENCODINGS; i++) {
        struct model_bytes bytes = model_file_rich(&model_encodings[i]);
        size_t table_end, data_end;

        measure(&bytes, model_encodings[i].length_bytes, &table_end, &data_end);
        for (size_t at = 0; at < table_end; at = model_file_next_damage(at)) {
            static const unsigned char changes[] = {0x01, 0x08, 0x80, 0xff};
            const unsigned char before = bytes.data[at];

            for (size_t j = 0; j < COUNT(changes); j++) {
                struct gguf_report report = {0};
                struct gguf_model *model;
                int result;

                bytes.data[at] = before ^ changes[j];
                result = model_file_open(bytes.data, bytes.size_bytes, &model, &report);
                cr_assert_eq(result == 0, model != NULL);
                cr_assert_eq(result == 0, report.n_errors == 0);
                for (uint64_t k = 0; model && k < model->n_tensors; k++) {
                    const struct gguf_tensor *tensor = &model->tensors[k];

                    cr_assert(tensor->size_bytes == 0 ||
                              (tensor->file_offset <= bytes.size_bytes &&
                               tensor->size_bytes <= bytes.size_bytes - tensor->file_offset));
                }
                gguf_close(model);
            }
            bytes.data[at] = before;
        }
        free(bytes.data);
    }
}
