/* Tensors whose type in model.gguf is another one than in the file. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "dequant/kernels.h"
#include "dequant/rows.h"
#include "fs/tree/facts/export.h"
#include "gguf/edits.h"
#include "tests/unit/dequant/random_blocks.h"
#include "tests/unit/fs/tree_file.h"
#include "tests/unit/gguf/model_file.h"

TestSuite(fs_export, .init = model_file_begin_test);

static struct fs_tree *make_tree(const struct gguf_model *model, enum fs_export_choice choice)
{
    struct gguf_report report = {0};
    struct fs_tree *tree;

    cr_assert_eq(fs_tree_make(model, &(struct fs_tree_options){.export = choice}, &tree, &report),
                 0, "%s", report.first_error.message);
    return tree;
}

static struct gguf_model *read_back(struct fs_tree *tree)
{
    struct tree_file file = tree_file_read(tree, "model.gguf");
    struct gguf_model *model = model_file_accept(file.bytes, file.size_bytes);

    free(file.bytes);
    return model;
}

/* Return a model with a matrix "a.weight" of random blocks, and a file type. */
static struct gguf_model *make_model(const struct dequant_type *type, uint64_t row_elements,
                                     uint32_t file_type)
{
    const uint64_t ne[] = {row_elements, 2ull * type->interleave_rows};
    struct gguf_writer *w = gguf_writer_open(3, false);
    uint8_t *data = malloc(MAX_BYTES);
    struct gguf_model *model;
    uint64_t n_bytes;

    cr_assert_not_null(data);
    make_data(expectation_of(type), data, ne[0], ne[1]);
    cr_assert_eq(dequant_rows_bytes(type, ne[0], ne[1], &n_bytes), 0);
    gguf_writer_add_u32(w, "general.file_type", file_type);
    gguf_writer_add_tensor(w, "a.weight", 8, 2, ne, type->id, data, n_bytes);
    free(data);
    model = model_file_make(w);
    return model;
}

/* Check that the data of the copy's tensor are the values of the tree's, encoded. */
static void expect_encoded(struct fs_tree *tree, const struct gguf_model *copy)
{
    struct tree_file values = tree_file_read(tree, "tensors/a.weight/f32");
    const struct gguf_tensor *tensor = &copy->tensors[0];
    uint8_t *expected = malloc(tensor->size_bytes);

    cr_assert_not_null(expected);
    if (tensor->type->id == DEQUANT_F32)
        memcpy(expected, values.bytes, values.size_bytes);
    else
        dequant_encode(tensor->type, values.bytes, expected, tensor->n_elements);
    cr_expect(memcmp(copy->files[0].source.mapping + tensor->file_offset, expected,
                     tensor->size_bytes) == 0,
              "%s", tensor->type->name);
    free(expected);
    free(values.bytes);
}

/* Types of up to 5 bits become Q8_0, others F16. */
Test(fs_export, types_that_ggml_lacks_are_replaced)
{
    size_t n_types = 0;

    for (size_t i = 0; i < dequant_type_count(); i++) {
        const struct dequant_type *type = dequant_type_at(i);
        const bool has_5_bits = type->block_bytes * 8 / type->block_elements <= 5;
        struct gguf_model *model, *copy;
        struct fs_tree *tree;

        if (type->is_in_ggml || type->plain || !dequant_is_decodable(type))
            continue;
        n_types++;
        model = make_model(type, 512, 140);
        tree = make_tree(model, FS_EXPORT_LOADABLE);
        copy = read_back(tree);
        cr_expect_eq(copy->tensors[0].type->id, has_5_bits ? DEQUANT_Q8_0 : DEQUANT_F16, "%s",
                     type->name);
        cr_expect_eq(copy->keys[0].value.u64, has_5_bits ? 7u : 1u, "%s", type->name);
        expect_encoded(tree, copy);
        tree_file_expect_slices(tree, "model.gguf", 1000);
        gguf_close(copy);
        fs_tree_free(tree);
        tree = make_tree(model, FS_EXPORT_STORED);
        copy = read_back(tree);
        cr_expect_eq(copy->tensors[0].type, type);
        cr_expect_eq(copy->keys[0].value.u64, 140u);
        gguf_close(copy);
        fs_tree_free(tree);
        gguf_close(model);
    }
    cr_expect_geq(n_types, 30u);
}

Test(fs_export, every_type_becomes_every_other)
{
    static const uint32_t ids[] = {DEQUANT_F32, DEQUANT_F16, DEQUANT_BF16, DEQUANT_Q8_0,
                                   DEQUANT_Q4_0};

    for (size_t i = 0; i < dequant_type_count(); i++) {
        const struct dequant_type *type = dequant_type_at(i);
        const bool is_integer = type->id >= DEQUANT_I8 && type->id <= DEQUANT_I64;
        struct gguf_model *model;

        if (!dequant_is_decodable(type))
            continue;
        model = make_model(type, 512, 0);
        for (size_t k = 0; k < sizeof ids / sizeof *ids; k++) {
            struct fs_tree *tree = make_tree(model, FS_EXPORT_F32 + (enum fs_export_choice)k);
            struct gguf_model *copy = read_back(tree);

            cr_expect_eq(copy->tensors[0].type->id, is_integer ? type->id : ids[k], "%s",
                         type->name);
            if (!is_integer && ids[k] != dequant_modern(type)->id)
                expect_encoded(tree, copy);
            cr_assert_not_null(gguf_find_key(copy, "general.quantization_version"));
            cr_expect_eq(gguf_find_key(copy, "general.quantization_version")->value.u64, 2u);
            gguf_close(copy);
            fs_tree_free(tree);
        }
        gguf_close(model);
    }
}

/* Rows that are no whole blocks become F16. */
Test(fs_export, rows_that_do_not_fit)
{
    static const uint64_t widths[] = {1, 31, 33, 48, 100};

    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        struct gguf_model *model = make_model(dequant_type_by_id(DEQUANT_BF16), widths[i], 32);
        struct fs_tree *tree = make_tree(model, FS_EXPORT_Q8_0);
        struct gguf_model *copy = read_back(tree);

        cr_expect_eq(copy->tensors[0].type->id, DEQUANT_F16);
        expect_encoded(tree, copy);
        gguf_close(copy);
        fs_tree_free(tree);
        gguf_close(model);
    }
}

/* A file type stays if most weights keep their type. */
Test(fs_export, the_file_type_is_that_of_most_weights)
{
    static const float zeros[2048];
    struct gguf_writer *w = gguf_writer_open(3, false);
    const uint64_t few[] = {256, 2}, many[] = {256, 8};
    struct gguf_model *model, *copy;
    struct fs_tree *tree;

    gguf_writer_add_u32(w, "general.file_type", 15);
    gguf_writer_add_tensor(w, "a.weight", 8, 2, few, 137, zeros, 2 * 76);
    gguf_writer_add_tensor(w, "b.weight", 8, 2, many, 0, zeros, sizeof zeros);
    model = model_file_make(w);
    tree = make_tree(model, FS_EXPORT_LOADABLE);
    copy = read_back(tree);
    cr_expect_eq(copy->tensors[0].type->id, DEQUANT_Q8_0);
    cr_expect_eq(copy->keys[0].value.u64, 15u);
    gguf_close(copy);
    fs_tree_free(tree);
    gguf_close(model);
}

/* Names and shapes of weights that llama-quantize leaves in their type, and of others. */
Test(fs_export, weights_that_stay)
{
    static const struct {
        const char *name;
        uint64_t ne[3];
        bool is_quantized;
    } cases[] = {
        {"output.weight", {32, 4, 1}, true},
        {"token_embd.weight", {32, 4, 1}, true},
        {"weight", {32, 2, 2}, true},
        {"blk.0.ffn_up_exps.weight", {32, 1, 2}, true},
        {"output.weight", {32, 1, 1}, false},
        {"output_norm.weight", {32, 2, 1}, false},
        {"blk.0.attn_q.bias", {32, 2, 1}, false},
        {"eight", {32, 2, 1}, false},
        {"blk.0.attn_q.weight.lora_a", {32, 2, 1}, false},
        {"position_embd.weight", {32, 2, 1}, false},
        {"v.position_embd.weight", {32, 2, 1}, false},
        {"a.token_types.weight", {32, 2, 1}, true},
        {"token_types.weight", {32, 2, 1}, false},
        {"blk.12.ffn_gate_inp.weight", {32, 2, 1}, false},
        {"blk.0.ssm_conv1d_q.weight", {32, 2, 1}, false},
        {"altup_proj.weight", {32, 2, 1}, false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gguf_tensor tensor = {.name = {cases[i].name, strlen(cases[i].name)},
                                     .type = dequant_type_by_id(DEQUANT_F16),
                                     .n_dims = 3};

        memcpy(tensor.ne, cases[i].ne, sizeof cases[i].ne);
        cr_expect_eq(fs_export_type(FS_EXPORT_Q8_0, &tensor)->id,
                     cases[i].is_quantized ? DEQUANT_Q8_0 : DEQUANT_F16, "%s", cases[i].name);
    }
}

/* An export to a type drops trailing dimensions of 1, as llama-quantize does; others keep them. */
Test(fs_export, trailing_dimensions_of_1)
{
    static const struct {
        uint64_t ne[4];
        uint32_t n_dims, kept;
    } cases[] = {
        {{32, 4, 1, 1}, 4, 2}, {{32, 1, 4, 1}, 3, 3}, {{32, 1, 4, 1}, 4, 3}, {{32, 1, 1, 1}, 2, 1},
        {{1, 1, 1, 1}, 3, 1},  {{32, 0, 1, 1}, 3, 2}, {{32, 4, 1, 1}, 2, 2}, {{32, 1, 1, 1}, 1, 1},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gguf_tensor tensor = {.name = {"a.weight", 8},
                                     .type = dequant_type_by_id(DEQUANT_F16),
                                     .n_dims = cases[i].n_dims,
                                     .ne = {[4] = 1, 1, 1, 1}};

        memcpy(tensor.ne, cases[i].ne, sizeof cases[i].ne);
        for (enum fs_export_choice choice = FS_EXPORT_LOADABLE; choice < FS_N_EXPORTS; choice++)
            cr_expect_eq(fs_export_dims(choice, &tensor),
                         choice >= FS_EXPORT_F32 ? cases[i].kept : cases[i].n_dims, "%zu %d", i,
                         (int)choice);
    }
}
