/* The choice between the types of one id, by the sizes of their tensors. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dequant/rows.h"
#include "gguf/ambiguous_types.h"
#include "tests/unit/gguf/model_file.h"

TestSuite(gguf_ambiguous_types, .init = model_file_begin_test);

/* Writes a tensor of that reading, of n_rows rows of row_elements. */
static void add(struct gguf_writer *w, const char *name, const struct dequant_type *type,
                uint64_t row_elements, uint64_t n_rows)
{
    uint64_t n_bytes;
    void *data;

    cr_assert_eq(dequant_rows_bytes(type, row_elements, n_rows, &n_bytes), 0, "%s", type->name);
    data = calloc(n_bytes + 1, 1);
    cr_assert_not_null(data);
    gguf_writer_add_tensor(w, name, strlen(name), 2, (uint64_t[]){row_elements, n_rows}, type->id,
                           data, n_bytes);
    free(data);
}

static const struct dequant_type *reading(uint32_t id, const char *name)
{
    const struct dequant_type *type = dequant_candidate_by_name(id, name);

    cr_assert_not_null(type, "%u:%s", id, name);
    return type;
}

static void count_warnings(void *user, const struct gguf_finding *finding)
{
    struct model_notes *found = user;

    if (finding->severity != GGUF_ERROR) {
        found->count++;
        found->last = *finding;
    }
}

/*
 * Finish and open the file without its last cut_bytes. Returns the model, or NULL if it was
 * refused, and its warnings and notes.
 */
static struct gguf_model *open_cut(struct gguf_writer *w, size_t cut_bytes,
                                   const struct gguf_open_options *options,
                                   struct model_notes *notes)
{
    struct gguf_report report = {.each = count_warnings, .user = notes};
    struct model_bytes bytes = model_file_finish(w);
    const int descriptor = model_file_create(bytes.data, bytes.size_bytes - cut_bytes);
    struct gguf_model *model;

    *notes = (struct model_notes){0};
    model_file_open_descriptor_with(descriptor, options, &model, &report);
    close(descriptor);
    free(bytes.data);
    return model;
}

static void expect_types(struct gguf_writer *w, const struct gguf_open_options *options,
                         size_t n_findings, const char *first, const char *second)
{
    struct model_notes notes;
    struct gguf_model *model = open_cut(w, 0, options, &notes);

    cr_assert_not_null(model, "%s", first);
    cr_expect_str_eq(model->tensors[0].type->name, first);
    if (second)
        cr_expect_str_eq(model->tensors[1].type->name, second);
    cr_expect_eq(notes.count, n_findings, "%s: %zu findings: %s", first, notes.count,
                 notes.last.message);
    gguf_close(model);
}

/* Return true if a tensor of 1024 x 64 elements has another size in all other readings. */
static bool is_told_by_size(const struct dequant_type *type)
{
    const struct dequant_type *other;
    uint64_t n_bytes, other_bytes;

    cr_assert_eq(dequant_rows_bytes(type, 1024, 64, &n_bytes), 0);
    for (size_t i = 0; (other = dequant_candidate_at(type->id, i)); i++) {
        cr_assert_eq(dequant_rows_bytes(other, 1024, 64, &other_bytes), 0);
        if (other != type && other_bytes == n_bytes)
            return false;
    }
    return true;
}

Test(gguf_ambiguous_types, every_reading_of_every_id)
{
    const struct dequant_type *type;
    size_t n_told = 0, n_others = 0;

    for (uint32_t id = 0; id < 1000; id++) {
        for (size_t i = 0; dequant_candidate_at(id, 1) && (type = dequant_candidate_at(id, i));
             i++) {
            const struct gguf_open_options stated = {.types = {type}, .n_types = 1};
            const struct dequant_type *usual = dequant_candidate_at(id, 0);
            const bool is_told = is_told_by_size(type);
            struct gguf_writer *w;

            for (int is_stated = 0; is_stated < 2; is_stated++) {
                w = gguf_writer_open(3, false);
                add(w, "a", type, 1024, 64);
                add(w, "b", type, 2048, 16);
                add(w, "f", dequant_type_by_id(DEQUANT_F32), 5, 1);
                if (is_stated)
                    expect_types(w, &stated, 0, type->name, type->name);
                else if (is_told)
                    expect_types(w, NULL, type != usual, type->name, type->name);
                else
                    expect_types(w, NULL, 1, usual->name, usual->name);
            }
            n_told += is_told;
            n_others += i > 0;
        }
    }
    cr_expect_eq(n_others, dequant_other_type_count());
    cr_expect_gt(n_told, 30u);
}

/* Blocks of 36 and of 34 bytes, both padded to 64. */
Test(gguf_ambiguous_types, padding_hides_the_difference)
{
    const struct gguf_open_options stated = {.types = {reading(42, "PQ2_0")}, .n_types = 1};
    const struct gguf_open_options *const options[] = {NULL, &stated};

    for (size_t i = 0; i < COUNT(options); i++) {
        struct gguf_writer *w = gguf_writer_open(3, false);

        add(w, "a", reading(42, "PQ2_0"), 128, 1);
        add(w, "f", dequant_type_by_id(DEQUANT_F32), 5, 1);
        expect_types(w, options[i], i == 0, i == 0 ? "Q2_0" : "PQ2_0", "F32");
    }
}

/* Blocks of 72, 68 and 66 bytes, all padded to 96. */
Test(gguf_ambiguous_types, three_types_of_one_size)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct model_notes notes;
    struct gguf_model *model;

    add(w, "a", reading(42, "IQ2_TN"), 256, 1);
    add(w, "f", dequant_type_by_id(DEQUANT_F32), 5, 1);
    model = open_cut(w, 0, NULL, &notes);
    cr_assert_not_null(model);
    cr_expect_eq(notes.count, 1u);
    cr_expect_not_null(strstr(notes.last.message,
                              "assuming Q2_0; if the values look wrong, use -o type=42:PQ2_0 or -o "
                              "type=42:IQ2_TN or -o ik=old"),
                       "%s", notes.last.message);
    gguf_close(model);
}

Test(gguf_ambiguous_types, a_stated_type_of_another_size)
{
    const struct gguf_open_options stated = {.types = {reading(42, "PQ2_0")}, .n_types = 1};
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct model_notes notes;
    struct gguf_model *model;

    add(w, "a", reading(42, "Q2_0"), 1024, 64);
    add(w, "f", dequant_type_by_id(DEQUANT_F32), 5, 1);
    model = open_cut(w, 0, &stated, &notes);
    cr_assert_not_null(model);
    cr_expect_str_eq(model->tensors[0].type->name, "PQ2_0");
    cr_expect_eq(notes.count, 2u); /* and bytes between the tensors */
    gguf_close(model);

    w = gguf_writer_open(3, false);
    add(w, "a", reading(42, "PQ2_0"), 1024, 64);
    add(w, "f", dequant_type_by_id(DEQUANT_F32), 1024, 1);
    model = open_cut(
        w, 0, &(struct gguf_open_options){.types = {reading(42, "Q2_0")}, .n_types = 1}, &notes);
    cr_expect_null(model);
    cr_expect_eq(notes.count, 1u);
    cr_expect_not_null(strstr(notes.last.message, "is not that of Q2_0 of ggml, but of PQ2_0"),
                       "%s", notes.last.message);
}

/* The last tensor of a file may lack its padding, and shows its size then. */
Test(gguf_ambiguous_types, the_end_of_the_file_decides)
{
    static const char *const names[] = {"Q2_0", "PQ2_0"};

    for (size_t i = 0; i < COUNT(names); i++) {
        struct gguf_writer *w = gguf_writer_open(3, false);
        struct model_notes notes;
        struct gguf_model *model;

        add(w, "f", dequant_type_by_id(DEQUANT_F32), 8, 1);
        add(w, "a", reading(42, names[i]), 128, 1);
        model = open_cut(w, i == 0 ? 64 - 36 : 64 - 34, NULL, &notes);
        cr_assert_not_null(model);
        cr_expect_str_eq(model->tensors[1].type->name, names[i]);
        cr_expect_eq(notes.count, i);
        gguf_close(model);
    }
}

/* The date that one id implies for the program also decides the other ids. */
Test(gguf_ambiguous_types, other_ids_of_the_same_time)
{
    struct gguf_writer *w = gguf_writer_open(3, false);

    add(w, "a", reading(153, "IQ2_KT_OLD"), 256, 4);
    add(w, "b", reading(155, "IQ4_KT_OLD"), 256, 16);
    expect_types(w, NULL, 2, "IQ2_KT_OLD", "IQ4_KT_OLD");

    w = gguf_writer_open(3, false);
    add(w, "a", reading(153, "IQ2_KT"), 256, 4);
    add(w, "b", reading(155, "IQ4_KT"), 256, 16);
    expect_types(w, NULL, 0, "IQ2_KT", "IQ4_KT");

    /* Padding hides which Q2_0 it is; Q1_0 in groups of 32 is PrismML's. */
    w = gguf_writer_open(3, false);
    add(w, "a", reading(42, "PQ2_0"), 128, 1);
    add(w, "b", reading(40, "Q1_0_G32"), 1024, 4);
    add(w, "f", dequant_type_by_id(DEQUANT_F32), 5, 1);
    expect_types(w, NULL, 2, "PQ2_0", "Q1_0_G32");
}

Test(gguf_ambiguous_types, old_types_of_ik_llama_cpp)
{
    const struct gguf_open_options old = {.old_ik = true};
    struct gguf_writer *w = gguf_writer_open(3, false);

    add(w, "a", reading(202, "Q4_0_R8"), 32, 8);
    add(w, "b", reading(223, "IQ4_XS_R8"), 256, 8);
    expect_types(w, &old, 0, "Q4_0_R4", "IQ4_XS_R4");

    /* Four rows do not make a group of eight. */
    w = gguf_writer_open(3, false);
    add(w, "a", reading(202, "Q4_0_R4"), 32, 4);
    add(w, "b", reading(208, "Q8_0_R8"), 32, 8);
    expect_types(w, NULL, 2, "Q4_0_R4", "Q8_0_R4");

    /* The sizes fit today's type. */
    w = gguf_writer_open(3, false);
    add(w, "a", reading(155, "IQ4_KT"), 256, 16);
    expect_types(w, &old, 0, "IQ4_KT", NULL);
}

Test(gguf_ambiguous_types, sizes_that_fit_nothing)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct model_notes notes;
    struct gguf_model *model;

    /* Shorter than any, before another tensor. */
    gguf_writer_add_tensor(w, "a", 1, 2, (uint64_t[]){1024, 64}, 42, NULL, 8192);
    add(w, "f", dequant_type_by_id(DEQUANT_F32), 5, 1);
    cr_expect_null(open_cut(w, 0, NULL, &notes));

    /* Longer than any: room is left, which is harmless. */
    w = gguf_writer_open(3, false);
    gguf_writer_add_tensor(w, "a", 1, 2, (uint64_t[]){1024, 64}, 42, NULL, 65536);
    add(w, "f", dequant_type_by_id(DEQUANT_F32), 5, 1);
    model = open_cut(w, 0, NULL, &notes);
    cr_assert_not_null(model);
    cr_expect_str_eq(model->tensors[0].type->name, "Q2_0");
    cr_expect_eq(notes.count, 2u);
    gguf_close(model);
}

/* Sizes that fit nothing show nothing, so that the user decides. */
Test(gguf_ambiguous_types, old_types_before_other_bytes)
{
    const struct gguf_open_options old = {.old_ik = true};
    const struct gguf_open_options *const options[] = {NULL, &old};

    for (size_t i = 0; i < COUNT(options); i++) {
        struct gguf_writer *w = gguf_writer_open(3, false);

        gguf_writer_add_tensor(w, "a", 1, 2, (uint64_t[]){32, 8}, 202, NULL, 1024);
        expect_types(w, options[i], i == 0 ? 2 : 1, i == 0 ? "Q4_0_R8" : "Q4_0_R4", NULL);
    }
}

Test(gguf_ambiguous_types, rows_that_are_too_short_for_the_stated_type)
{
    const struct gguf_open_options stated = {.types = {reading(39, "TL2")}, .n_types = 1};
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct gguf_report report = {0};
    struct model_bytes bytes;
    struct gguf_model *model;
    int descriptor;

    add(w, "a", reading(39, "MXFP4"), 128, 4);
    bytes = model_file_finish(w);
    descriptor = model_file_create(bytes.data, bytes.size_bytes);
    model_file_open_descriptor_with(descriptor, &stated, &model, &report);
    close(descriptor);
    free(bytes.data);
    cr_expect_null(model);
    cr_expect_eq(report.first_error.rule, GGUF_RULE_ROW_LENGTH);
    cr_expect_not_null(strstr(report.first_error.message, "row length 128 is too short for TL2"),
                       "%s", report.first_error.message);
}

/* A cut file, or one that grows, has its types all the same. */
Test(gguf_ambiguous_types, incomplete_files)
{
    static const struct gguf_open_options partial = {.partial = true};

    for (int i = 0; i < 2; i++) {
        struct gguf_writer *w = gguf_writer_open(3, false);
        struct model_notes notes;
        struct gguf_model *model;

        add(w, "a", reading(42, "PQ2_0"), 1024, 64);
        add(w, "b", reading(42, "PQ2_0"), 1024, 64);
        model = open_cut(w, 20000, i == 0 ? NULL : &partial, &notes);
        cr_expect_eq(model == NULL, i == 0);
        if (model)
            cr_expect_str_eq(model->tensors[1].type->name, "PQ2_0");
        gguf_close(model);
    }
}

Test(gguf_ambiguous_types, choices_of_the_user)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"", "needs ID:NAME"},
        {"42", "needs ID:NAME"},
        {"PQ2_0", "needs ID:NAME"},
        {"-1:PQ2_0", "needs ID:NAME"},
        {"99999999999:PQ2_0", "needs ID:NAME"},
        {"45:TQ3_1S", "id 45"},
        {"42:", "Q2_0 of ggml, PQ2_0 of PrismML, IQ2_TN of ik_llama.cpp before 2024-09-09"},
        {"42:Q4_0", "type 42 can be"},
        {"12:Q5_K", "type 12 can be: Q4_K of ggml"},
    };
    struct gguf_open_options options = {0};

    for (size_t i = 0; i < COUNT(bad); i++) {
        struct gguf_report report = {0};

        cr_expect_eq(gguf_add_type_choice(&options, bad[i].text, &report), -EINVAL);
        cr_expect_not_null(strstr(report.first_error.message, bad[i].message), "%s",
                           report.first_error.message);
    }
    cr_expect_eq(options.n_types, 0u);
    for (uint32_t id = 0; id < 1000; id++) {
        for (size_t i = 0; dequant_candidate_at(id, i); i++) {
            struct gguf_report report = {0};
            char text[64];

            snprintf(text, sizeof text, "%u:%s", id, dequant_candidate_at(id, i)->name);
            cr_expect_eq(gguf_add_type_choice(&options, text, &report), 0, "%s", text);
            if (dequant_candidate_at(id, 1))
                cr_expect_eq(options.types[options.n_types - 1], dequant_candidate_at(id, i));
        }
    }
    cr_expect_leq(options.n_types, dequant_other_type_count());
}
