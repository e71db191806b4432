/* model.gguf and split/: opening them gives the same model again. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dequant/rows.h"
#include "fs/tree/core/names.h"
#include "gguf/edits.h"
#include "tests/unit/dequant/random_blocks.h"
#include "tests/unit/gguf/model_file.h"
#include "tests/unit/gguf/shard_files.h"
#include "tests/unit/fs/tree_file.h"

TestSuite(fs_model_gguf, .init = model_file_begin_test);

/* Open a file of the tree as a model. */
static struct gguf_model *read_back(struct fs_tree *tree, const char *path)
{
    struct tree_file file = tree_file_read(tree, path);
    struct gguf_model *model = model_file_accept(file.bytes, file.size_bytes);

    cr_expect_str_eq(model->format, "GGUF v3");
    cr_expect_not(model->big_endian);
    free(file.bytes);
    return model;
}

static void expect_same_file(struct fs_tree *tree, struct fs_tree *other, const char *path)
{
    struct tree_file file = tree_file_read(tree, path), copy = tree_file_read(other, path);

    cr_expect_eq(file.size_bytes, copy.size_bytes, "%s", path);
    cr_expect(file.size_bytes == copy.size_bytes &&
                  memcmp(file.bytes, copy.bytes, file.size_bytes) == 0,
              "%s", path);
    free(file.bytes);
    free(copy.bytes);
}

/* Compare the metadata and the values of all decodable tensors. */
static void expect_same_model(struct fs_tree *tree, struct fs_tree *other)
{
    char path[FS_NAME_BYTES + 32];
    const fs_node_index tensors = tree_file_find(tree, "tensors");
    const struct fs_node *folder = &tree->nodes.list[tensors];

    cr_expect_eq(tree->model->n_tensors, other->model->n_tensors);
    expect_same_file(tree, other, "metadata.json");
    for (uint32_t i = 0; i < folder->n_children; i++) {
        const fs_node_index child = tree->nodes.children[folder->first_child + i];

        snprintf(path, sizeof path, "tensors/%s/f32", tree->nodes.list[child].name);
        if (tree_file_find(tree, path) != FS_NO_NODE)
            expect_same_file(tree, other, path);
    }
}

/* Check the layout that ggml requires: each tensor starts at the padded end of the one before. */
static void expect_no_gaps(const struct gguf_model *model)
{
    uint64_t offset = model->n_tensors ? model->tensors[0].file_offset : 0;

    cr_expect_eq(offset % model->alignment_bytes, 0u);
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        const struct gguf_tensor *tensor = &model->tensors[i];

        cr_expect_eq(tensor->file_offset, offset);
        offset += tensor->type ? tensor->size_bytes : tensor->extent_bytes;
        offset += -offset & (model->alignment_bytes - 1);
    }
    if (model->n_tensors > 0)
        cr_expect_eq(model->files[0].source.size_bytes, offset);
}

static void expect_read_back(struct gguf_model *model)
{
    struct fs_tree *tree = tree_file_make_tree(model);
    struct gguf_model *copy = read_back(tree, "model.gguf");
    struct fs_tree *copy_tree = tree_file_make_tree(copy);

    expect_same_model(tree, copy_tree);
    expect_no_gaps(copy);
    fs_tree_free(copy_tree);
    gguf_close(copy);
    fs_tree_free(tree);
    gguf_close(model);
}

/*
 * Write a model with values and types of every width. Unlike model_file_rich(), it has no tensor of
 * unknown type.
 */
static struct gguf_writer *begin_model(const struct model_encoding *encoding)
{
    static const uint32_t types[] = {0, 1, 8, 12, 15, 24, 27, 39};
    struct gguf_writer *w = gguf_writer_open(encoding->version, encoding->big_endian);
    uint64_t state = 1;

    gguf_writer_add_string(w, "general.architecture", "llama");
    gguf_writer_add_f64(w, "f64", 0.1);
    gguf_writer_add_i16(w, "i16", -2);
    gguf_writer_add_strings(w, "tokens", (const char *const[]){"a", "", "ccc"}, 3);
    gguf_writer_add_array(w, "nested", GGUF_WRITER_ARRAY, 2);
    gguf_writer_array(w, GGUF_WRITER_U16, 2);
    gguf_writer_u16(w, 1);
    gguf_writer_u16(w, 1000);
    gguf_writer_array(w, GGUF_WRITER_STRING, 1);
    gguf_writer_string(w, "deep", 4);
    for (size_t i = 0; i < COUNT(types); i++) {
        const struct dequant_type *type = dequant_type_by_id(types[i]);
        const uint64_t ne[] = {type->block_elements, 3};
        unsigned char data[3 * 512];
        char name[16];

        for (size_t j = 0; j < 3 * type->block_bytes; j++)
            data[j] = (unsigned char)(model_file_random(&state) >> 32);
        snprintf(name, sizeof name, "t%zu", i);
        gguf_writer_add_tensor(w, name, strlen(name), 2, ne, types[i], data,
                               3 * (size_t)type->block_bytes);
    }
    return w;
}

Test(fs_model_gguf, every_encoding_is_read_back)
{
    for (size_t i = 0; i < MODEL_N_ENCODINGS; i++) {
        if (!model_encodings[i].big_endian)
            expect_read_back(model_file_rich_model(i));
        expect_read_back(model_file_make(begin_model(&model_encodings[i])));
    }
}

Test(fs_model_gguf, a_current_file_is_served_unchanged)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct model_bytes bytes;
    struct gguf_model *model;
    struct fs_tree *tree;
    struct tree_file file;

    /* A duplicate key, a gap, and bytes after the last tensor: rewriting would drop them. */
    gguf_writer_add_u8(w, "twice", 1);
    gguf_writer_add_u8(w, "twice", 1);
    gguf_writer_add_tensor(w, "a", 1, 1, (uint64_t[]){1}, 0, "1234", 4);
    gguf_writer_add_tensor(w, "b", 1, 1, (uint64_t[]){1}, 0, "12345678", 8);
    gguf_writer_override_offset(w, 128);
    gguf_writer_add_tensor(w, "c", 1, 1, (uint64_t[]){50}, 24, NULL, 150);
    gguf_writer_override_offset(w, 32);
    bytes = model_file_finish(w);
    model = model_file_accept(bytes.data, bytes.size_bytes - 3);
    tree = tree_file_make_tree(model);
    file = tree_file_read(tree, "model.gguf");
    cr_assert_eq(file.size_bytes, bytes.size_bytes - 3);
    cr_expect_eq(memcmp(file.bytes, bytes.data, file.size_bytes), 0);
    free(file.bytes);
    free(bytes.data);
    fs_tree_free(tree);
    gguf_close(model);
}

Test(fs_model_gguf, every_slice)
{
    for (size_t i = 0; i < MODEL_N_ENCODINGS; i++) {
        struct gguf_writer *w =
            gguf_writer_open(model_encodings[i].version, model_encodings[i].big_endian);
        struct gguf_model *model;
        struct fs_tree *tree;
        struct tree_file file;
        const struct fs_image *image;
        char *out;

        gguf_writer_add_strings(w, "k", (const char *const[]){"x", "yz"}, 2);
        gguf_writer_add_u32(w, "n", 7);
        gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){3}, 1, "123456", 6);
        gguf_writer_add_tensor(w, "q", 1, 1, (uint64_t[]){64}, 8, NULL, 68);
        model = model_file_make(w);
        tree = tree_file_make_tree(model);
        file = tree_file_read(tree, "model.gguf");
        out = malloc(file.size_bytes + 1);
        cr_assert_not_null(out);
        cr_assert_eq(fs_tree_open(tree, tree_file_find(tree, "model.gguf"), NULL, &image), 0);
        for (uint64_t offset = 0; offset <= file.size_bytes; offset++) {
            for (size_t length = 0; length <= file.size_bytes - offset; length++) {
                cr_assert_eq(fs_image_read(image, offset, length, out), (ssize_t)length);
                cr_assert_eq(memcmp(out, file.bytes + offset, length), 0);
            }
        }
        fs_tree_close(tree, image);
        free(out);
        free(file.bytes);
        fs_tree_free(tree);
        gguf_close(model);
    }
}

static void edit(struct gguf_model *model, const char *text)
{
    struct gguf_report report = {0};
    struct gguf_edits edits = {0};

    cr_assert_eq(gguf_edits_set(&edits, text, &report), 0, "%s", report.first_error.message);
    cr_assert_eq(gguf_edits_apply(&edits, &model, &report), 0, "%s", report.first_error.message);
    gguf_edits_free(&edits);
}

Test(fs_model_gguf, contains_edits)
{
    for (size_t i = 0; i < MODEL_N_ENCODINGS; i++) {
        struct gguf_model *model = model_file_make(begin_model(&model_encodings[i]));

        edit(model, "tokens=arr:[\"new\",\"tokens\"]");
        edit(model, "general.alignment=u32:256");
        edit(model, "a=arr[f32]:[1.5,2]");
        expect_read_back(model);
    }
}

/* The size of an unknown type is unknown: all bytes up to the next tensor are kept. */
Test(fs_model_gguf, unknown_types_keep_their_bytes)
{
    struct gguf_writer *w = gguf_writer_open(2, false);
    struct gguf_model *model, *copy;
    struct fs_tree *tree;

    gguf_writer_add_tensor(w, "new", 3, 1, (uint64_t[]){5}, 999, "0123456789", 10);
    gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){1}, 0, "abcd", 4);
    gguf_writer_add_tensor(w, "last", 4, 1, (uint64_t[]){5}, 999, "ABCDEFGHIJ", 10);
    model = model_file_make(w);
    tree = tree_file_make_tree(model);
    copy = read_back(tree, "model.gguf");
    cr_expect_eq(copy->tensors[0].type_id, 999u);
    cr_expect_arr_eq(copy->files[0].source.mapping + copy->tensors[0].file_offset, "0123456789",
                     10);
    cr_expect_arr_eq(copy->files[0].source.mapping + copy->tensors[1].file_offset, "abcd", 4);
    cr_expect_arr_eq(copy->files[0].source.mapping + copy->tensors[2].file_offset, "ABCDEFGHIJ",
                     10);
    gguf_close(copy);
    fs_tree_free(tree);
    gguf_close(model);

    /* In a big-endian file it is also unknown which bytes to swap: model.gguf is missing. */
    w = gguf_writer_open(3, true);
    gguf_writer_add_tensor(w, "new", 3, 1, (uint64_t[]){5}, 999, "0123456789", 10);
    model = model_file_make(w);
    tree = tree_file_make_tree(model);
    cr_expect_eq(tree_file_find(tree, "model.gguf"), FS_NO_NODE);
    fs_tree_free(tree);
    gguf_close(model);
}

/* Return a model with one tensor of random blocks of an old layout. */
static struct gguf_model *make_old_model(const struct dequant_type *type)
{
    enum { N_BLOCKS = 6 };
    struct gguf_writer *w = gguf_writer_open(3, false);
    const uint64_t n_bytes = (uint64_t)N_BLOCKS * type->block_bytes;
    unsigned char data[N_BLOCKS * 64];
    struct gguf_tensor *tensor;
    struct gguf_model *model;
    uint64_t state = type->id;

    for (size_t i = 0; i < n_bytes; i++)
        data[i] = (unsigned char)(model_file_random(&state) >> 32);
    gguf_writer_add_tensor(w, "old", 3, 1, &n_bytes, 24, data, n_bytes);
    model = model_file_make(w);
    tensor = &model->tensors[0];
    tensor->type = type;
    tensor->type_id = type->id;
    tensor->n_elements = tensor->ne[0] = (uint64_t)N_BLOCKS * type->block_elements;
    model->is_current = false;
    return model;
}

Test(fs_model_gguf, old_blocks_keep_their_values)
{
    for (size_t i = 0; i < dequant_old_type_count(); i++) {
        const struct dequant_type *type = dequant_type_at(dequant_type_count() + i);
        struct gguf_model *model = make_old_model(type), *copy;
        struct fs_tree *tree = tree_file_make_tree(model), *copy_tree;
        const bool is_reordered = strncmp(type->name, "Q5", 2) == 0;

        copy = read_back(tree, "model.gguf");
        copy_tree = tree_file_make_tree(copy);
        cr_expect_str_eq(copy->tensors[0].type->name, is_reordered ? type->name : "F32");
        cr_expect_eq(copy->tensors[0].type->era, DEQUANT_ERA);
        expect_same_file(tree, copy_tree, "tensors/old/f32");
        fs_tree_free(copy_tree);
        gguf_close(copy);
        fs_tree_free(tree);
        gguf_close(model);
    }
}

/* Return a model with two groups of rows of an interleaved type, after a tensor of another type. */
static struct gguf_model *make_interleaved_model(const struct dequant_type *type,
                                                 uint32_t file_type)
{
    const uint64_t ne[] = {2ull * (type->block_elements < 32 ? 32 : type->block_elements),
                           2ull * type->interleave_rows};
    struct gguf_writer *w = gguf_writer_open(3, false);
    uint8_t *data = malloc(MAX_BYTES);
    struct gguf_model *model;
    uint64_t n_bytes;

    cr_assert_not_null(data);
    make_data(expectation_of(type), data, ne[0], ne[1]);
    cr_assert_eq(dequant_rows_bytes(type, ne[0], ne[1], &n_bytes), 0);
    gguf_writer_add_u32(w, "general.file_type", file_type);
    gguf_writer_add_tensor(w, "f", 1, 1, (uint64_t[]){3}, 0, "123456789012", 12);
    gguf_writer_add_tensor(w, "t", 1, 2, ne, type->id, data, n_bytes);
    free(data);
    model = model_file_make(w);
    return model;
}

/* Compare as numbers: zeros may differ in sign. */
static void expect_same_values(struct fs_tree *tree, struct fs_tree *other, const char *path)
{
    struct tree_file file = tree_file_read(tree, path), copy = tree_file_read(other, path);

    cr_assert_eq(file.size_bytes, copy.size_bytes, "%s", path);
    for (size_t i = 0; i < file.size_bytes; i += sizeof(float)) {
        float a, b;

        memcpy(&a, file.bytes + i, sizeof a);
        memcpy(&b, copy.bytes + i, sizeof b);
        cr_assert(a == b || memcmp(&a, &b, sizeof a) == 0, "%s: number %zu", path, i / sizeof a);
    }
    free(file.bytes);
    free(copy.bytes);
}

Test(fs_model_gguf, interleaved_rows_are_put_back)
{
    size_t n_types = 0;

    for (size_t i = 0; i < dequant_type_count(); i++) {
        const struct dequant_type *type = dequant_type_at(i);
        struct gguf_model *model, *copy;
        struct fs_tree *tree, *copy_tree;

        if (!type->plain)
            continue;
        n_types++;
        model = make_interleaved_model(type, 214);
        tree = tree_file_make_tree(model);
        copy = read_back(tree, "model.gguf");
        copy_tree = tree_file_make_tree(copy);
        cr_expect_eq(copy->tensors[1].type->id, type->plain->id, "%s", type->name);
        cr_expect_eq(copy->tensors[1].type->interleave_rows, 1u);
        expect_no_gaps(copy);
        expect_same_values(tree, copy_tree, "tensors/t/f32");
        expect_same_file(tree, copy_tree, "tensors/f/f32");
        tree_file_expect_slices(tree, "model.gguf", 2000);
        fs_tree_free(copy_tree);
        gguf_close(copy);
        fs_tree_free(tree);
        gguf_close(model);
    }
    cr_expect_eq(n_types, 24u);
}

Test(fs_model_gguf, the_file_type_follows_interleaved_rows)
{
    static const uint32_t file_types[][2] = {
        {214, 14}, {202, 2}, {232, 32},  {33, 2},    {35, 2},    {399, 7},
        {7, 7},    {15, 15}, {341, 341}, {224, 224}, {231, 231},
    };

    for (size_t i = 0; i < sizeof file_types / sizeof *file_types; i++) {
        struct gguf_model *model =
            make_interleaved_model(dequant_type_by_id(212), file_types[i][0]);
        struct fs_tree *tree = tree_file_make_tree(model);
        struct gguf_model *copy = read_back(tree, "model.gguf");

        cr_expect_eq(copy->keys[0].value.u64, file_types[i][1], "%u", file_types[i][0]);
        gguf_close(copy);
        fs_tree_free(tree);
        edit(model, "general.file_type=u32:214");
        tree = tree_file_make_tree(model);
        copy = read_back(tree, "model.gguf");
        cr_expect_eq(copy->keys[0].value.u64, 214u, "a value from the user");
        gguf_close(copy);
        fs_tree_free(tree);
        gguf_close(model);
    }
}

static struct fs_tree *make_split(const struct gguf_model *model, uint64_t split_bytes)
{
    struct gguf_report report = {0};
    struct fs_tree *tree;

    cr_assert_eq(fs_tree_make(model, &(struct fs_tree_options){.split.limit_bytes = split_bytes},
                              &tree, &report),
                 0, "%s", report.first_error.message);
    return tree;
}

/* Write the files of split/ to a folder and open the model by the last one. */
static struct gguf_model *join(struct fs_tree *tree, const struct fs_node *split,
                               const char *folder)
{
    struct gguf_report report = {0};
    struct gguf_model *joined;
    char path[SHARD_PATH_BYTES];

    for (uint32_t i = 0; i < split->n_children; i++) {
        const fs_node_index child = tree->nodes.children[split->first_child + i];
        struct tree_file file = tree_file_read_node(tree, child);
        FILE *out;

        snprintf(path, sizeof path, "%s/%s", folder, tree->nodes.list[child].name);
        out = fopen(path, "wb");
        cr_assert_not_null(out);
        cr_assert_eq(fwrite(file.bytes, 1, file.size_bytes, out), file.size_bytes);
        cr_assert_eq(fclose(out), 0);
        free(file.bytes);
    }
    cr_assert_eq(gguf_open(path, &joined, &report), 0, "%s", report.first_error.message);
    return joined;
}

static void expect_number(const struct gguf_model *model, const char *name,
                          enum gguf_value_type type, uint64_t number)
{
    const struct gguf_key *key = gguf_find_key(model, name);

    cr_assert_not_null(key, "%s", name);
    cr_expect_eq(key->value.type, type, "%s", name);
    cr_expect_eq(key->value.u64, number, "%s", name);
}

Test(fs_model_gguf, shards_hold_all_tensors_in_order)
{
    static const uint64_t limits[] = {1, 100, 500, UINT64_MAX};

    for (size_t i = 0; i < MODEL_N_ENCODINGS * COUNT(limits); i++) {
        struct gguf_model *model =
            model_file_make(begin_model(&model_encodings[i / COUNT(limits)]));
        struct fs_tree *tree = make_split(model, limits[i % COUNT(limits)]);
        const struct fs_node *split = &tree->nodes.list[tree_file_find(tree, "split")];
        char folder[] = "/tmp/ggufs-split-XXXXXX";
        struct gguf_model *joined;
        struct fs_tree *joined_tree;

        cr_assert_not_null(mkdtemp(folder));
        joined = join(tree, split, folder);
        joined_tree = tree_file_make_tree(joined);
        cr_expect_eq(joined->n_files, split->n_children);
        cr_expect_eq(joined->n_keys, model->n_keys + 3);
        expect_number(joined, "split.no", GGUF_UINT16, 0);
        expect_number(joined, "split.count", GGUF_UINT16, split->n_children);
        expect_number(joined, "split.tensors.count", GGUF_INT32, model->n_tensors);
        cr_assert_eq(joined->n_tensors, model->n_tensors);
        for (uint64_t k = 0; k < model->n_tensors; k++) {
            char path[64];

            snprintf(path, sizeof path, "tensors/t%ju/f32", (uintmax_t)k);
            expect_same_file(tree, joined_tree, path);
        }
        cr_expect_eq(split->n_children == 1, limits[i % COUNT(limits)] == UINT64_MAX);
        fs_tree_free(joined_tree);
        gguf_close(joined);
        shard_files_remove(folder);
        fs_tree_free(tree);
        gguf_close(model);
    }
}
