/* Keys: order, offsets, look-up by name, duplicates. */
#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/gguf/model_file.h"

TestSuite(gguf_keys, .init = model_file_begin_test);

Test(gguf_keys, keeps_file_order_and_offsets)
{
    static const char *const names[] = {"z", "a", "", "tokenizer.ggml.tokens", "A"};

    for (size_t i = 0; i < MODEL_N_ENCODINGS; i++) {
        const struct model_encoding *e = &model_encodings[i];
        struct gguf_writer *w = gguf_writer_open(e->version, e->big_endian);
        uint64_t offset = 8 + 2 * e->length_bytes;
        struct gguf_model *model;

        for (size_t j = 0; j < COUNT(names); j++)
            gguf_writer_add_u16(w, names[j], (uint16_t)j);
        model = model_file_make(w);
        cr_assert_eq(model->n_keys, COUNT(names));
        for (size_t j = 0; j < COUNT(names); j++) {
            cr_expect(gguf_string_equals(model->keys[j].name, names[j]));
            cr_expect_eq(model->keys[j].value.u64, j);
            cr_expect_eq(model->keys[j].file_offset, offset);
            offset += e->length_bytes + strlen(names[j]) + 4 + 2;
        }
        gguf_close(model);
    }
}

Test(gguf_keys, finds_keys_by_exact_name)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct gguf_model *model;

    gguf_writer_add_u8(w, "general.name.long", 1);
    gguf_writer_add_u8(w, "general.name", 2);
    gguf_writer_key(w, "general\0name", 12, GGUF_WRITER_U8);
    gguf_writer_u8(w, 3);
    gguf_writer_add_u8(w, "\xff", 4);
    model = model_file_make(w);
    cr_expect_eq(gguf_find_key(model, "general.name"), &model->keys[1]);
    cr_expect_eq(gguf_find_key(model, "general.name.long"), &model->keys[0]);
    cr_expect_eq(gguf_find_key(model, "\xff"), &model->keys[3]);
    cr_expect_null(gguf_find_key(model, "general"));
    cr_expect_null(gguf_find_key(model, "general.name."));
    cr_expect_null(gguf_find_key(model, "General.name"));
    cr_expect_null(gguf_find_key(model, ""));
    cr_expect_eq(model->keys[2].name.length_bytes, 12u);
    cr_expect_arr_eq(model->keys[2].name.data, "general\0name", 12);
    gguf_close(model);
}

Test(gguf_keys, equal_duplicates_are_merged)
{
    for (size_t i = 0; i < MODEL_N_ENCODINGS; i++) {
        const struct model_encoding *e = &model_encodings[i];
        struct gguf_writer *w = gguf_writer_open(e->version, e->big_endian);
        static const char *const tokens[] = {"a", "bc"};
        struct model_notes notes;
        struct gguf_report report = model_file_report(&notes);
        struct model_bytes bytes;
        struct gguf_model *model;

        for (int j = 0; j < 3; j++) {
            gguf_writer_add_u32(w, "general.alignment", 64);
            gguf_writer_add_i8(w, "i8", -1);
            gguf_writer_add_bool(w, "bool", true);
            gguf_writer_add_f32(w, "f32", -0.0f);
            gguf_writer_add_f64(w, "f64", (double)NAN);
            gguf_writer_add_string(w, "string", "text");
            gguf_writer_add_string(w, "empty", "");
            gguf_writer_add_strings(w, "array", tokens, 2);
            gguf_writer_add_array(w, "no elements", GGUF_WRITER_U8, 0);
        }
        gguf_writer_add_u8(w, "once", 1);
        bytes = model_file_finish(w);
        cr_assert_eq(model_file_open(bytes.data, bytes.size_bytes, &model, &report), 0, "%s",
                     report.first_error.message);
        cr_expect_eq(notes.count, 18u);
        cr_assert_eq(model->n_keys, 10u);
        cr_expect_eq(model->alignment_bytes, 64u);
        cr_expect(gguf_string_equals(model->keys[0].name, "general.alignment"));
        cr_expect(gguf_string_equals(model->keys[8].name, "no elements"));
        cr_expect(gguf_string_equals(model->keys[9].name, "once"));
        cr_expect_eq(model->keys[0].file_offset, 8 + 2 * e->length_bytes);
        gguf_close(model);
        free(bytes.data);
    }
}

/* Add one of two values of a type that differ as little as possible. */
static void add_one_of_two(struct gguf_writer *w, int type, int which)
{
    switch (type) {
    case 0:
        gguf_writer_add_f32(w, "k", which ? -0.0f : 0.0f);
        break;
    case 1:
        gguf_writer_add_f64(w, "k", which ? -0.0 : 0.0);
        break;
    case 2:
        gguf_writer_add_bool(w, "k", which);
        break;
    case 3:
        gguf_writer_add_string(w, "k", which ? "ab" : "a");
        break;
    case 4:
        gguf_writer_add_array(w, "k", which ? GGUF_WRITER_U8 : GGUF_WRITER_I8, 0);
        break;
    case 5:
        gguf_writer_add_array(w, "k", GGUF_WRITER_U8, 2);
        gguf_writer_raw(w, which ? "ab" : "ac", 2);
        break;
    case 6:
        gguf_writer_add_u64(w, "k", which ? 1 : 1 + (1ull << 32));
        break;
    default: /* equal numbers of different types */
        if (which)
            gguf_writer_add_u16(w, "k", 1);
        else
            gguf_writer_add_i16(w, "k", 1);
    }
}

Test(gguf_keys, unequal_duplicates_are_refused)
{
    for (int type = 0; type < 8; type++) {
        for (int first = 0; first < 2; first++) {
            struct gguf_writer *w = gguf_writer_open(3, false);
            struct gguf_report report = {0};
            struct model_bytes bytes;
            struct gguf_model *model;

            add_one_of_two(w, type, first);
            add_one_of_two(w, type, !first);
            bytes = model_file_finish(w);
            cr_expect_eq(model_file_open(bytes.data, bytes.size_bytes, &model, &report), -EEXIST,
                         "case %d", type);
            cr_expect_null(model);
            free(bytes.data);
        }
    }
}
