/* The tree of a model: its files, their sizes and their contents. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/tree/facts/split.h"
#include "fs/tree/views/view_files.h"
#include "tests/unit/gguf/model_file.h"
#include "tests/unit/gguf/old_file.h"
#include "tests/unit/fs/tree_file.h"

TestSuite(fs_tree, .init = model_file_begin_test);

Test(fs_tree, list_of_files)
{
    static const char *const paths[] = {
        "summary.txt",
        "metadata.json",
        "tensors.json",
        "model.gguf",
        "metadata/general.architecture.json",
        "metadata/a%2Fb %25.%01.json",
        "metadata/nested.json",
        "tensors/token_embd.weight/info",
        "tensors/token_embd.weight/raw",
        "tensors/token_embd.weight/f32",
        "tensors/token_embd.weight/f16",
        "tensors/token_embd.weight/bf16",
        "tensors/token_embd.weight/f32.npy",
        "tensors/token_embd.weight/f16.npy",
        "tensors/token_embd.weight/stats.json",
        "tensors/a%2Fb/f32",
        "tensors/%2E%2E/raw",
        "tensors/empty/f32",
        "tensors/empty/raw",
        "tensors/removed/raw",
        "tensors/unknown/info",
    };
    static const char *const missing[] = {
        "metadata",
        "tensors",
        "metadata/general.architecture",
        "metadata/metadata.json",
        "tensors/a",
        "tensors/a/b/raw",
        "tensors/..",
        "tensors/removed/f32",
        "tensors/removed/f16.npy",
        "model.safetensors",
        "tensors/unknown/raw",
        "tensors/unknown/f32",
        "tensors/scalar/f3",
        "raw",
        "metadata/.json",
    };
    struct gguf_model *model = model_file_rich_model(2);
    struct fs_tree *tree = tree_file_make_tree(model);

    for (size_t i = 0; i < COUNT(paths); i++) {
        const fs_node_index index = tree_file_find(tree, paths[i]);

        cr_assert_neq(index, FS_NO_NODE, "%s", paths[i]);
        cr_expect_eq(tree->nodes.list[index].kind, FS_FILE, "%s", paths[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        const fs_node_index index = tree_file_find(tree, missing[i]);

        cr_assert_neq(index, FS_NO_NODE);
        cr_expect_eq(tree->nodes.list[index].kind, FS_DIRECTORY, "%s", missing[i]);
    }
    for (size_t i = 2; i < COUNT(missing); i++)
        cr_expect_eq(tree_file_find(tree, missing[i]), FS_NO_NODE, "%s", missing[i]);
    fs_tree_free(tree);
    gguf_close(model);
}

/* A llama with a vocabulary, and with tensors that its checkpoint does not have. */
static struct gguf_model *make_llama(void)
{
    static const struct {
        const char *name;
        uint32_t number;
    } keys[] = {
        {"llama.embedding_length", 8}, {"llama.feed_forward_length", 8},  {"llama.block_count", 1},
        {"llama.context_length", 8},   {"llama.attention.head_count", 2},
    };
    static const char *const names[] = {
        "token_embd.weight",     "blk.0.attn_q.weight",      "blk.0.attn_k.weight",
        "blk.0.attn_v.weight",   "blk.0.attn_output.weight", "blk.0.ffn_up.weight",
        "blk.0.ffn_gate.weight", "blk.0.ffn_down.weight",    "extra.x.in_sum2",
        "extra.x.counts",        "output_norm.weight",       "blk.0.attn_norm.weight",
        "blk.0.ffn_norm.weight"};
    struct gguf_writer *w = gguf_writer_open(3, false);

    gguf_writer_add_string(w, "general.architecture", "llama");
    for (size_t i = 0; i < COUNT(keys); i++)
        gguf_writer_add_u32(w, keys[i].name, keys[i].number);
    gguf_writer_add_f32(w, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    gguf_writer_add_string(w, "tokenizer.ggml.model", "llama");
    gguf_writer_add_strings(w, "tokenizer.ggml.tokens", (const char *const[]){"<unk>", "a"}, 2);
    gguf_writer_add_strings(w, "tokenizer.ggml.merges", NULL, 0);
    gguf_writer_add_array(w, "tokenizer.ggml.scores", GGUF_WRITER_F32, 2);
    gguf_writer_f32(w, 0);
    gguf_writer_f32(w, -1);
    gguf_writer_add_array(w, "tokenizer.ggml.token_type", GGUF_WRITER_I32, 2);
    gguf_writer_i32(w, 2);
    gguf_writer_i32(w, 1);
    gguf_writer_add_string(w, "tokenizer.chat_template", "{{ messages }}");
    gguf_writer_add_string(w, "tokenizer.chat_template.tool_use", "{{ tools }}");
    for (size_t i = 0; i < COUNT(names); i++)
        gguf_writer_add_tensor(w, names[i], strlen(names[i]), 2, (uint64_t[]){8, 8}, 0, NULL, 256);
    return model_file_make(w);
}

Test(fs_tree, every_view_has_a_node)
{
    /* An old file, whose tensors also have GGUF names. */
    struct model_bytes old = old_file_make(old_file_at(0));
    struct gguf_model *models[] = {model_file_rich_model(2),
                                   model_file_accept(old.data, old.size_bytes), make_llama()};
    bool has_node[64] = {false};

    for (size_t i = 0; i < COUNT(models); i++) {
        struct gguf_report report = {0};
        struct fs_tree_options options = {.split.limit_bytes = UINT64_MAX, .hf_shard_bytes = 1};
        struct fs_tree *tree;

        options.extras = calloc(options.n_extras = 1, sizeof *options.extras);
        options.extras[0].name = strdup("mmproj.gguf");
        cr_assert_eq(fs_tree_make(models[i], &options, &tree, &report), 0);
        for (fs_node_index j = 0; j < tree->nodes.count; j++) {
            const struct fs_node *node = fs_tree_node(tree, j);

            cr_expect(!node->view || node->kind == fs_view_kind(node->view));
            if (node->view)
                has_node[node->view - fs_views.views] = true;
        }
        fs_tree_free(tree);
        gguf_close(models[i]);
    }
    free(old.data);
    cr_assert_leq(fs_views.n_views, COUNT(has_node));
    for (size_t i = 0; i < fs_views.n_views; i++) /* translated files: mount/test_translation */
        cr_expect(has_node[i] || fs_views.views[i].part || strstr(fs_views.views[i].path, "l.uns"));
}

/* Read every file of a tree and compare its size. Returns the number of files. */
static uint32_t read_all(struct fs_tree *tree)
{
    uint32_t n_files = 0;

    for (fs_node_index i = 0; i < tree->nodes.count; i++) {
        const struct fs_node *node = fs_tree_node(tree, i);
        uint64_t size_bytes = 1;

        if (node->kind == FS_FILE) {
            free(tree_file_read_node(tree, i).bytes);
            n_files++;
        } else {
            cr_assert_eq(fs_tree_size(tree, i, NULL, &size_bytes), 0);
            cr_assert_eq(size_bytes, node->kind == FS_LINK ? strlen(node->target) : 0u);
        }
    }
    return n_files;
}

Test(fs_tree, sizes_match_in_every_encoding)
{
    for (size_t i = 0; i < MODEL_N_ENCODINGS; i++) {
        struct gguf_model *model = model_file_rich_model(i);
        struct fs_tree *tree = tree_file_make_tree(model);

        /*
         * summary.txt, metadata.json, tensors.json, tensors.tsv, SHA256SUMS, hf.unsupported.txt;
         * no model.gguf with big-endian unknown types
         */
        const uint32_t n_model_files = 6 + (model->big_endian ? 0 : 1 /* model.gguf */);
        const uint32_t n_key_files = 17;
        const uint32_t n_tensor_files =
            9 /* info */ + 8 /* raw */ + 7 * 6 /* f32, f16, …, stats.json */;

        cr_expect_eq(read_all(tree), n_model_files + n_key_files + n_tensor_files);
        fs_tree_free(tree);
        gguf_close(model);
    }
}

Test(fs_tree, raw_and_f32_hold_the_tensor)
{
    for (size_t i = 0; i < MODEL_N_ENCODINGS; i++) {
        struct gguf_model *model = model_file_rich_model(i);
        struct fs_tree *tree = tree_file_make_tree(model);

        for (uint64_t j = 0; j < model->n_tensors; j++) {
            const struct gguf_tensor *tensor = &model->tensors[j];
            char name[FS_NAME_BYTES], path[300];
            struct tree_file file;

            fs_name_escape(tensor->name, "", name);
            if (tensor->type) {
                snprintf(path, sizeof path, "tensors/%s/raw", name);
                file = tree_file_read(tree, path);
                cr_expect_eq(file.size_bytes, tensor->size_bytes, "%s", path);
                cr_expect_arr_eq(file.bytes, model->files[0].source.mapping + tensor->file_offset,
                                 tensor->size_bytes, "%s", path);
                free(file.bytes);
            }
            if (tensor->type && dequant_is_decodable(tensor->type)) {
                snprintf(path, sizeof path, "tensors/%s/f32", name);
                file = tree_file_read(tree, path);
                cr_expect_eq(file.size_bytes, 4 * tensor->n_elements, "%s", path);
                free(file.bytes);
            }
        }
        fs_tree_free(tree);
        gguf_close(model);
    }
}

Test(fs_tree, f32_does_not_depend_on_byte_order)
{
    static const uint32_t types[] = {0, 1, 8, 12, 27, 28, 30};
    struct fs_tree *trees[2];
    struct gguf_model *models[2];

    for (int big_endian = 0; big_endian < 2; big_endian++) {
        struct gguf_writer *w = gguf_writer_open(3, big_endian);

        for (size_t i = 0; i < COUNT(types); i++) {
            const struct dequant_type *type = dequant_type_by_id(types[i]);
            const uint64_t n_elements = 512;
            uint8_t data[8 * 512], swapped[sizeof data];
            const size_t n_blocks = n_elements / type->block_elements;
            uint64_t state = i;

            for (size_t j = 0; j < sizeof data; j++)
                data[j] = (uint8_t)(model_file_random(&state) & 0x3f);
            dequant_swap_blocks(type, data, swapped, n_blocks);
            gguf_writer_add_tensor(w, type->name, strlen(type->name), 1, &n_elements, type->id,
                                   big_endian ? swapped : data, n_blocks * type->block_bytes);
        }
        models[big_endian] = model_file_make(w);
        trees[big_endian] = tree_file_make_tree(models[big_endian]);
    }
    for (size_t i = 0; i < COUNT(types); i++) {
        char path[64];
        struct tree_file little, big;

        snprintf(path, sizeof path, "tensors/%s/f32", dequant_type_by_id(types[i])->name);
        little = tree_file_read(trees[0], path);
        big = tree_file_read(trees[1], path);
        cr_expect_eq(little.size_bytes, big.size_bytes);
        cr_expect_arr_eq(little.bytes, big.bytes, little.size_bytes, "%s", path);
        free(little.bytes);
        free(big.bytes);
    }
    for (int i = 0; i < 2; i++) {
        fs_tree_free(trees[i]);
        gguf_close(models[i]);
    }
}

Test(fs_tree, an_empty_tensor_may_have_any_offset)
{
    static const uint64_t offsets[] = {1ull << 20, 1ull << 47, 1ull << 63, -(uint64_t)256};

    for (size_t i = 0; i < COUNT(offsets); i++) {
        struct gguf_writer *w = gguf_writer_open(3, false);
        struct gguf_model *model;
        struct fs_tree *tree;

        gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){0}, 0, NULL, 0);
        gguf_writer_override_offset(w, offsets[i]);
        model = model_file_make(w);
        tree = tree_file_make_tree(model);
        tree_file_expect(tree, "tensors/t/raw", "");
        tree_file_expect(tree, "tensors/t/f32", "");
        fs_tree_free(tree);
        gguf_close(model);
    }
}

/*
 * The FNV-1a hash of these bytes is 0 and stays 0 however many NULs follow. Names that start with
 * them and are cut get the same file name. (The bytes: http://www.isthe.com/chongo/tech/comp/fnv/)
 */
static const char zero_hash[400] = "\xd5\x6b\xb9\x53\x42\x87\x08\x36";

Test(fs_tree, clashing_file_names_are_refused)
{
    for (int of_keys = 0; of_keys < 2; of_keys++) {
        struct gguf_writer *w = gguf_writer_open(3, false);
        struct gguf_report report = {0};
        struct gguf_model *model;
        struct fs_tree *tree;

        for (size_t i = 0; i < 2; i++) {
            if (of_keys) {
                gguf_writer_key(w, zero_hash, 300 + i, GGUF_WRITER_U8);
                gguf_writer_u8(w, 1);
            } else {
                gguf_writer_add_tensor(w, zero_hash, 300 + i, 0, NULL, 0, NULL, 4);
            }
        }
        model = model_file_make(w);
        cr_expect_eq(fs_tree_make(model, NULL, &tree, &report), -EEXIST);
        cr_expect_null(tree);
        cr_expect_eq(report.n_errors, 1u);
        cr_expect_not_null(strstr(report.first_error.message, "\"\\xd5k\\xb9S"), "%s",
                           report.first_error.message);
        gguf_close(model);
    }
}

Test(fs_tree, any_accepted_file_can_be_read)
{
    /* Files with one byte changed that are still accepted. */
    for (size_t i = 2; i < MODEL_N_ENCODINGS; i++) {
        struct model_bytes bytes = model_file_rich(&model_encodings[i]);
        struct gguf_model *model = model_file_accept(bytes.data, bytes.size_bytes);
        const uint64_t end = model->tensors[0].file_offset;
        size_t n_accepted = 0;

        gguf_close(model);
        for (size_t at = 0; at < end; at = model_file_next_damage(at)) {
            const unsigned char before = bytes.data[at];
            struct gguf_report report = {0};

            bytes.data[at] = before ^ (at % 2 ? 0x80 : 0x01);
            if (model_file_open(bytes.data, bytes.size_bytes, &model, &report) == 0) {
                struct fs_tree *tree = tree_file_make_tree(model);

                read_all(tree);
                fs_tree_free(tree);
                gguf_close(model);
                n_accepted++;
            }
            bytes.data[at] = before;
        }
        cr_expect_gt(n_accepted, 50u);
        free(bytes.data);
    }
}

Test(fs_tree, metadata_survive_truncation)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    static char longer_than_a_page[9000];
    struct gguf_report report = {0};
    struct model_bytes bytes;
    struct gguf_model *model;
    struct fs_tree *tree;
    const struct fs_image *image;
    uint64_t size_bytes;
    fs_node_index index;
    int descriptor;
    char out[16];

    memset(longer_than_a_page, 'x', sizeof longer_than_a_page - 1);
    gguf_writer_add_string(w, "number", "one");
    gguf_writer_add_string(w, "text", longer_than_a_page);
    gguf_writer_add_array(w, "zeros", GGUF_WRITER_U8, 2);
    gguf_writer_raw(w, "\0\0", 2);
    bytes = model_file_finish(w);
    descriptor = model_file_create(bytes.data, bytes.size_bytes);
    cr_assert_eq(model_file_open_descriptor(descriptor, &model, &report), 0);
    tree = tree_file_make_tree(model);
    index = tree_file_find(tree, "metadata/text.json");

    /* The metadata were copied when the file was opened. */
    cr_assert_eq(ftruncate(descriptor, 0), 0);
    cr_expect_eq(fs_tree_size(tree, index, NULL, &size_bytes), 0);
    cr_expect_eq(size_bytes, sizeof longer_than_a_page - 1 + 3);
    cr_assert_eq(fs_tree_open(tree, index, NULL, &image), 0);
    cr_expect_eq(fs_image_read(image, 0, sizeof out, out), sizeof out);
    cr_expect_arr_eq(out, "\"xxxxxxxxxxxxxxx", sizeof out);
    fs_tree_close(tree, image);
    cr_assert_eq(fs_tree_open(tree, tree_file_find(tree, "metadata/zeros.json"), NULL, &image), 0);
    cr_expect_eq(fs_image_read(image, 0, sizeof out, out), 6);
    cr_expect_arr_eq(out, "[0,0]\n", 6);
    fs_tree_close(tree, image);
    fs_tree_free(tree);
    gguf_close(model);
    close(descriptor);
    free(bytes.data);
}

/* Hash the contents of all files 20 times. Returns NULL if the hashes differ. */
static void *hash_all_files(void *argument)
{
    struct fs_tree *tree = argument;
    uint64_t first = 0;

    for (int i = 0; i < 20; i++) {
        uint64_t hash = 0xcbf29ce484222325;

        for (fs_node_index j = 0; j < tree->nodes.count; j++) {
            unsigned char bytes[8192];
            const struct fs_image *image;
            ssize_t n;

            if (tree->nodes.list[j].kind != FS_FILE)
                continue;
            if (fs_tree_open(tree, j, NULL, &image) < 0)
                return NULL;
            n = fs_image_read(image, 0, sizeof bytes, (char *)bytes);
            for (ssize_t k = 0; k < n; k++)
                hash = (hash ^ bytes[k]) * 0x100000001b3;
            fs_tree_close(tree, image);
        }
        if (i > 0 && hash != first)
            return NULL;
        first = hash;
    }
    return (void *)(uintptr_t)first;
}

Test(fs_tree, threads_may_read_concurrently)
{
    struct gguf_model *model = model_file_rich_model(3);
    struct fs_tree *tree = tree_file_make_tree(model);
    pthread_t threads[4];
    void *hash;

    for (size_t i = 0; i < COUNT(threads); i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, hash_all_files, tree), 0);
    for (size_t i = 0; i < COUNT(threads); i++) {
        cr_assert_eq(pthread_join(threads[i], &hash), 0);
        cr_expect_not_null(hash);
        cr_expect_eq(hash, hash_all_files(tree));
    }
    fs_tree_free(tree);
    gguf_close(model);
}

Test(fs_tree, path_look_up)
{
    static const struct {
        const char *path;
        int result;
        const char *same; /* the same node by plain names */
    } paths[] = {
        {"", 0, ""},
        {"/", 0, ""},
        {".", 0, ""},
        {"..", 0, ""},
        {"metadata.json", 0, "metadata.json"},
        {"/metadata.json", 0, "metadata.json"},
        {"./tensors//a%2Fb/./f32", 0, "tensors/a%2Fb/f32"},
        {"tensors/a%2Fb/../../metadata/", 0, "metadata"},
        {"tensors/../../tensors", 0, "tensors"},
        {"tensors/a", -ENOENT, NULL},
        {"metadata.json/a", -ENOTDIR, NULL},
        {"metadata.json/..", -ENOTDIR, NULL},
    };
    struct gguf_model *model = model_file_rich_model(2);
    struct fs_tree *tree = tree_file_make_tree(model);
    fs_node_index node;
    char long_name[300];

    for (size_t i = 0; i < COUNT(paths); i++) {
        cr_expect_eq(fs_tree_find(tree, paths[i].path, &node), paths[i].result, "%s",
                     paths[i].path);
        if (paths[i].same)
            cr_expect_eq(node, tree_file_find(tree, paths[i].same), "%s", paths[i].path);
    }
    memset(long_name, 'x', sizeof long_name);
    long_name[sizeof long_name - 1] = '\0';
    cr_expect_eq(fs_tree_find(tree, long_name, &node), -ENOENT);
    fs_tree_free(tree);
    gguf_close(model);
}

Test(fs_tree, open_files_share_an_image)
{
    struct gguf_model *model = model_file_rich_model(2);
    struct fs_tree *tree = tree_file_make_tree(model);
    const fs_node_index info = tree_file_find(tree, "tensors/a%2Fb/info");
    const struct fs_image *first, *second, *other;
    char out[8];

    cr_assert_eq(fs_tree_open(tree, info, NULL, &first), 0);
    cr_assert_eq(fs_tree_open(tree, info, NULL, &second), 0);
    cr_assert_eq(fs_tree_open(tree, tree_file_find(tree, "tensors.json"), NULL, &other), 0);
    cr_expect_eq(first, second);
    cr_expect_neq(first, other);
    fs_tree_close(tree, first);
    cr_expect_eq(fs_image_read(second, 0, 8, out), 8);
    cr_expect_arr_eq(out, "{\"name\":", 8);
    fs_tree_close(tree, second);
    /* fs_tree_free() frees `other`. */
    cr_expect_eq(fs_tree_open(tree, FS_ROOT, NULL, &first), -EISDIR);
    fs_tree_free(tree);
    gguf_close(model);
}
