/* Valid files: the model contains what the file says. Keys and values have their own test files. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/gguf/model_file.h"

TestSuite(gguf_parse, .init = model_file_begin_test);

static const struct gguf_tensor *tensor_of(const struct gguf_model *model, const char *name)
{
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        if (gguf_string_equals(model->tensors[i].name, name))
            return &model->tensors[i];
    }
    cr_assert_fail("no tensor %s", name);
    return NULL;
}

Test(gguf_parse, version_and_byte_order)
{
    for (size_t i = 0; i < MODEL_N_ENCODINGS; i++) {
        const struct model_encoding *e = &model_encodings[i];
        struct gguf_model *model = model_file_make(gguf_writer_open(e->version, e->big_endian));

        cr_expect_str_eq(model->format, e->format);
        cr_expect_eq(model->big_endian, e->big_endian);
        cr_expect_eq(model->n_keys, 0u);
        cr_expect_eq(model->n_tensors, 0u);
        cr_expect_eq(model->n_files, 1u);
        cr_expect_eq(model->alignment_bytes, 32u);
        gguf_close(model);
    }
}

Test(gguf_parse, longest_names)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    const uint64_t one = 1;
    static char name[GGUF_MAX_TENSOR_NAME_BYTES];
    struct gguf_model *model;

    memset(name, 'n', sizeof name);
    gguf_writer_key(w, name, GGUF_MAX_KEY_BYTES, GGUF_WRITER_U8);
    gguf_writer_u8(w, 1);
    gguf_writer_add_tensor(w, name, sizeof name, 1, &one, 0, NULL, 4);
    gguf_writer_add_tensor(w, name, 65, 1, &one, 0, NULL, 4);
    model = model_file_make(w);
    cr_expect_eq(model->keys[0].name.length_bytes, 65535u);
    cr_expect_eq(model->tensors[0].name.length_bytes, sizeof name);
    cr_expect_eq(model->tensors[1].name.length_bytes, 65u);
    gguf_close(model);
}

Test(gguf_parse, every_valid_alignment)
{
    static const uint32_t alignments[] = {1, 2, 8, 32, 64, 4096, 1 << 16};
    const uint64_t ne = 5;

    for (size_t i = 0; i < COUNT(alignments); i++) {
        struct gguf_writer *w = gguf_writer_open(3, false);
        struct gguf_model *model;

        gguf_writer_add_u8(w, "odd", 1);
        gguf_writer_set_alignment(w, alignments[i]);
        gguf_writer_add_tensor(w, "a", 1, 1, &ne, 24, "first", 5);
        gguf_writer_add_tensor(w, "b", 1, 1, &ne, 24, "again", 5);
        model = model_file_make(w);
        cr_expect_eq(model->alignment_bytes, alignments[i]);
        for (size_t j = 0; j < 2; j++) {
            cr_expect_eq(model->tensors[j].file_offset % alignments[i], 0u);
            cr_expect_arr_eq(model->files[0].source.mapping + model->tensors[j].file_offset,
                             j ? "again" : "first", 5);
        }
        gguf_close(model);
    }
}

Test(gguf_parse, an_alignment_larger_than_the_file)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct gguf_model *model;

    gguf_writer_add_u32(w, "general.alignment", 1u << 16);
    model = model_file_make(w);
    cr_expect_eq(model->alignment_bytes, 1u << 16);
    gguf_close(model);
}

Test(gguf_parse, zero_to_eight_dimensions)
{
    static const uint64_t ne[] = {4, 3, 2, 5, 1, 2, 3, 2};
    static const uint64_t n_elements[] = {1, 4, 12, 24, 120, 120, 240, 720, 1440};

    for (size_t i = 0; i < MODEL_N_ENCODINGS; i++) {
        const struct model_encoding *e = &model_encodings[i];
        struct gguf_writer *w = gguf_writer_open(e->version, e->big_endian);
        uint64_t offset = 8 + 2 * e->length_bytes;
        struct gguf_model *model;

        for (uint32_t n_dims = 0; n_dims <= GGUF_MAX_DIMS; n_dims++) {
            const char name[] = {(char)('0' + n_dims), '\0'};

            gguf_writer_add_tensor(w, name, 1, n_dims, ne, 30, NULL, 2 * n_elements[n_dims]);
        }
        model = model_file_make(w);
        cr_assert_eq(model->n_tensors, GGUF_MAX_DIMS + 1u);
        for (uint32_t n_dims = 0; n_dims <= GGUF_MAX_DIMS; n_dims++) {
            const struct gguf_tensor *tensor = &model->tensors[n_dims];

            cr_expect_eq(tensor->name.length_bytes, 1u);
            cr_expect_eq(tensor->name.data[0], '0' + (int)n_dims);
            cr_expect_eq(tensor->n_dims, n_dims);
            for (uint32_t j = 0; j < GGUF_MAX_DIMS; j++)
                cr_expect_eq(tensor->ne[j], j < n_dims ? ne[j] : 1);
            cr_expect_eq(tensor->n_elements, n_elements[n_dims]);
            cr_expect_eq(tensor->size_bytes, 2 * n_elements[n_dims]);
            cr_expect_eq(tensor->type_id, 30u);
            cr_expect_eq(tensor->type, dequant_type_by_id(30));
            cr_expect_eq(tensor->big_endian, e->big_endian);
            cr_expect_eq(tensor->file_index, 0u);
            cr_expect_eq(tensor->info_offset, offset);
            cr_expect_eq(tensor->file_offset % 32, 0u);
            offset += e->length_bytes * (1 + n_dims) + 1 + 4 + 4 + 8;
        }
        cr_expect_eq(model->tensors[0].file_offset, (offset + 31) / 32 * 32);
        gguf_close(model);
    }
}

Test(gguf_parse, a_block_of_every_type)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct gguf_model *model;

    for (size_t i = 0; i < dequant_type_count(); i++) {
        const struct dequant_type *type = dequant_type_at(i);
        const uint64_t ne[] = {type->block_elements, 2 * type->interleave_rows};

        gguf_writer_add_tensor(w, type->name, strlen(type->name), 2, ne, type->id, NULL,
                               ne[1] * (type->row_header_bytes + type->block_bytes) +
                                   type->tail_bytes);
    }
    model = model_file_make(w);
    cr_assert_eq(model->n_tensors, dequant_type_count());
    for (size_t i = 0; i < dequant_type_count(); i++) {
        const struct dequant_type *type = dequant_type_at(i);

        cr_expect_eq(model->tensors[i].type, type);
        cr_expect_eq(model->tensors[i].size_bytes,
                     2 * type->interleave_rows * (type->row_header_bytes + type->block_bytes) +
                         type->tail_bytes);
    }
    gguf_close(model);
}

Test(gguf_parse, unknown_types_have_no_size)
{
    static const uint32_t ids[] = {4, 5, 43, 1000, UINT32_MAX};
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct gguf_model *model;

    for (size_t i = 0; i < COUNT(ids); i++) {
        const uint64_t ne[] = {7, 11};

        gguf_writer_add_tensor(w, &"abcde"[i], 1, 2, ne, ids[i], NULL, 3);
    }
    gguf_writer_add_tensor(w, "far and empty", 13, 1, (uint64_t[]){0}, 4, NULL, 0);
    gguf_writer_override_offset(w, 1ull << 40);
    model = model_file_make(w);
    for (size_t i = 0; i < COUNT(ids); i++) {
        const struct gguf_tensor *tensor = &model->tensors[i];

        cr_expect_eq(tensor->type_id, ids[i]);
        cr_expect_null(tensor->type);
        cr_expect_eq(tensor->n_elements, 77u);
        cr_expect_eq(tensor->size_bytes, 0u);
    }
    gguf_close(model);
}

Test(gguf_parse, removed_types_have_a_size_but_no_decoder)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    const uint64_t ne[] = {64, 4};
    struct gguf_model *model;

    gguf_writer_add_tensor(w, "t", 1, 2, ne, 37, NULL, 8 * 18);
    model = model_file_make(w);
    cr_assert_not_null(model->tensors[0].type);
    cr_expect_str_eq(model->tensors[0].type->name, "IQ4_NL_4_8");
    cr_expect(!dequant_is_decodable(model->tensors[0].type));
    cr_expect_eq(model->tensors[0].size_bytes, 144u);
    gguf_close(model);
}

Test(gguf_parse, empty_tensors_have_no_data)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    static const uint64_t shapes[][4] = {
        {0, 1, 1, 1},
        {64, 0, 1, 1},
        {UINT64_MAX - 31, UINT64_MAX, 0, UINT64_MAX},
        {32, 3, 3, 0},
    };
    struct gguf_model *model;

    for (size_t i = 0; i < COUNT(shapes); i++)
        gguf_writer_add_tensor(w, &"abcd"[i], 1, 4, shapes[i], 8, NULL, 0);
    gguf_writer_override_offset(w, 1ull << 40);
    model = model_file_make(w);
    for (size_t i = 0; i < COUNT(shapes); i++) {
        cr_expect_eq(model->tensors[i].n_elements, 0u);
        cr_expect_eq(model->tensors[i].size_bytes, 0u);
        for (size_t j = 0; j < 4; j++)
            cr_expect_eq(model->tensors[i].ne[j], shapes[i][j]);
    }
    gguf_close(model);
}

Test(gguf_parse, a_vocabulary_may_end_before_its_padding)
{
    for (size_t i = 0; i < MODEL_N_ENCODINGS; i++) {
        const struct model_encoding *e = &model_encodings[i];
        struct gguf_writer *w = gguf_writer_open(e->version, e->big_endian);
        const size_t end = 8 + 2 * e->length_bytes + (e->length_bytes + 1 + 4 + 1);
        struct model_bytes bytes;

        gguf_writer_add_u8(w, "k", 1);
        bytes = model_file_finish(w);
        cr_assert_gt(bytes.size_bytes, end);
        for (size_t size_bytes = end; size_bytes <= bytes.size_bytes; size_bytes++) {
            struct gguf_model *model = model_file_accept(bytes.data, size_bytes);

            cr_expect_eq(model->n_keys, 1u);
            gguf_close(model);
        }
        free(bytes.data);
    }
}

Test(gguf_parse, the_last_tensor_needs_no_padding)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    const uint64_t ne = 33;
    struct model_bytes bytes;
    struct gguf_model *model;

    gguf_writer_add_tensor(w, "t", 1, 1, &ne, 24, NULL, 33);
    bytes = model_file_finish(w);
    for (size_t cut = 0; cut <= 31; cut++) {
        model = model_file_accept(bytes.data, bytes.size_bytes - cut);
        cr_expect_eq(model->tensors[0].size_bytes, 33u);
        gguf_close(model);
    }
    free(bytes.data);
}

Test(gguf_parse, gaps_and_trailing_bytes_are_noted)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    const uint64_t ne = 40;
    struct model_notes notes;
    struct gguf_report report = model_file_report(&notes);
    struct model_bytes bytes;
    struct gguf_model *model;

    /* "a" is followed by 24 bytes of padding and a gap of 64 bytes. */
    gguf_writer_add_tensor(w, "a", 1, 1, &ne, 24, NULL, 128);
    gguf_writer_add_tensor(w, "b", 1, 1, &ne, 24, NULL, 40);
    bytes = model_file_finish(w);
    cr_expect_eq(model_file_open(bytes.data, bytes.size_bytes, &model, &report), 0);
    cr_expect_eq(report.n_errors, 0u);
    cr_assert_eq(notes.count, 1u);
    cr_expect_not_null(strstr(notes.last.message, "64 bytes between tensors \"a\" and \"b\""), "%s",
                       notes.last.message);
    cr_expect_eq(notes.last.file_offset, tensor_of(model, "a")->file_offset + 40);
    gguf_close(model);

    bytes.data = realloc(bytes.data, bytes.size_bytes + 7);
    memset(bytes.data + bytes.size_bytes, 1, 7);
    report = model_file_report(&notes);
    cr_expect_eq(model_file_open(bytes.data, bytes.size_bytes + 7, &model, &report), 0);
    cr_expect_eq(notes.count, 2u);
    cr_expect_not_null(strstr(notes.last.message, "7 bytes after the last tensor, \"b\""), "%s",
                       notes.last.message);
    gguf_close(model);
    free(bytes.data);
}

Test(gguf_parse, no_note_without_gaps)
{
    for (size_t i = 0; i < MODEL_N_ENCODINGS; i++) {
        const struct model_encoding *e = &model_encodings[i];
        struct gguf_writer *w = gguf_writer_open(e->version, e->big_endian);
        struct model_notes notes;
        struct gguf_report report = model_file_report(&notes);
        struct model_bytes bytes;
        struct gguf_model *model;

        gguf_writer_add_tensor(w, "a", 1, 1, (uint64_t[]){5}, 0, NULL, 20);
        gguf_writer_add_tensor(w, "b", 1, 1, (uint64_t[]){0}, 0, NULL, 0);
        gguf_writer_add_tensor(w, "c", 1, 1, (uint64_t[]){16}, 0, NULL, 64);
        bytes = model_file_finish(w);
        cr_expect_eq(model_file_open(bytes.data, bytes.size_bytes, &model, &report), 0);
        cr_expect_eq(notes.count, 0u, "%s", notes.last.message);
        gguf_close(model);
        free(bytes.data);
    }
}

Test(gguf_parse, data_in_any_order)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    const uint64_t ne = 32;
    struct gguf_model *model;

    gguf_writer_add_tensor(w, "late", 4, 1, &ne, 24, NULL, 32);
    gguf_writer_override_offset(w, 64);
    gguf_writer_add_tensor(w, "early", 5, 1, &ne, 24, NULL, 32);
    gguf_writer_override_offset(w, 0);
    gguf_writer_add_tensor(w, "middle", 6, 1, &ne, 24, NULL, 32);
    gguf_writer_override_offset(w, 32);
    model = model_file_make(w);
    cr_expect_eq(tensor_of(model, "late")->file_offset,
                 tensor_of(model, "early")->file_offset + 64);
    gguf_close(model);
}

Test(gguf_parse, a_key_and_a_tensor_may_share_a_name)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    const uint64_t one = 1;

    gguf_writer_add_u8(w, "same", 1);
    gguf_writer_add_tensor(w, "same", 4, 1, &one, 24, "x", 1);
    gguf_close(model_file_make(w));
}

Test(gguf_parse, names_survive_a_change_of_the_file)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    const uint64_t one = 1;
    struct model_bytes bytes;
    struct gguf_report report = {0};
    struct gguf_model *model;
    int descriptor;

    gguf_writer_add_u8(w, "key", 1);
    gguf_writer_add_tensor(w, "tensor", 6, 1, &one, 24, "x", 1);
    bytes = model_file_finish(w);
    descriptor = model_file_create(bytes.data, bytes.size_bytes);
    cr_assert_eq(model_file_open_descriptor(descriptor, &model, &report), 0);
    cr_assert_eq(ftruncate(descriptor, 0), 0);
    cr_expect(gguf_string_equals(model->keys[0].name, "key"));
    cr_expect_not_null(gguf_find_key(model, "key"));
    cr_expect(gguf_string_equals(model->tensors[0].name, "tensor"));
    close(descriptor);
    gguf_close(model);
    free(bytes.data);
}

Test(gguf_parse, the_rich_file_in_every_encoding)
{
    for (size_t i = 0; i < MODEL_N_ENCODINGS; i++) {
        struct model_bytes bytes = model_file_rich(&model_encodings[i]);
        struct gguf_model *model = model_file_accept(bytes.data, bytes.size_bytes);

        cr_expect_eq(model->n_keys, 17u);
        cr_expect_eq(model->n_tensors, 9u);
        gguf_close(model);
        free(bytes.data);
    }
}

Test(gguf_parse, close_accepts_null)
{
    gguf_close(NULL);
}
