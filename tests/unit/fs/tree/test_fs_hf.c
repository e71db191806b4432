/* The table of checkpoints: what holds for every row. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/tree/hf/hf_config.h"
#include "fs/tree/hf/hf_rows.h"
#include "fs/tree/hf/hf_tensors.h"
#include "gguf/models/tensor_lists.h"
#include "tests/unit/fs/tree_file.h"
#include "tests/unit/gguf/model_file.h"

static void check_rules(const struct fs_hf_row *row)
{
    struct gguf_names names;

    cr_assert_eq(gguf_names_read(row->naming, &names), 0);
    for (size_t i = 0; i < names.count; i++) {
        const struct gguf_rename *rule = &names.list[i];
        const char *hf = rule->other;
        const bool has_layer = strchr(rule->name, '%') || rule->is_key;

        cr_expect_lt(rule->order, GGUF_N_ORDERS, "%s: %s", row->class_name, rule->name);
        if (!hf)
            continue;
        cr_expect_eq(has_layer, strchr(hf, '%') != NULL, "%s: %s", row->class_name, rule->name);
        cr_expect(!strchr(rule->name, '#') || strchr(hf, '#'), "%s: %s", row->class_name,
                  rule->name);
        if (strstr(rule->name, ".bias"))
            cr_expect(strstr(hf, "bias"), "%s: %s", row->class_name, hf);
        if (rule->with) {
            cr_expect(gguf_order_joins(rule->order));
            cr_expect(strchr(rule->with, '%'));
        }
    }
    gguf_names_free(&names);
}

Test(fs_hf, rows_are_complete)
{
    const struct fs_hf_row *row;
    size_t n_rows = 0;

    for (; (row = fs_hf_row_at(n_rows)); n_rows++) {
        cr_assert(row->class_name && row->model_type && row->naming && row->config, "%s",
                  row->architecture);
        check_rules(row);
        /* A row that fits all models of its architecture is the last one of it. */
        for (size_t i = 0; i < n_rows; i++) {
            if (!fs_hf_row_at(i)->applies)
                cr_expect_str_neq(fs_hf_row_at(i)->architecture, row->architecture);
        }
    }
    cr_expect_gt(n_rows, 60u);
}

/* ---- rows and the lists of gguf/models/ ---- */

static int is_required(void *user, const char *name, size_t length, bool is_needed)
{
    const char *wanted = user;

    return is_needed && strncmp(wanted, name, length) == 0 &&
           (wanted[length] == '\0' || strcmp(wanted + length, ".weight") == 0);
}

/* Rows list only what their classes need beyond that. */
Test(fs_hf, lists_have_every_architecture)
{
    const struct fs_hf_row *row;

    for (size_t n = 0; (row = fs_hf_row_at(n)); n++) {
        const struct gguf_architecture *listed = gguf_architecture_find(row->architecture);

        cr_assert(listed, "%s", row->architecture);
        if (row->needs) {
            const char *lists[] = {listed->tensors.model,     listed->tensors.layer,
                                   listed->tensors.attention, listed->tensors.recurrence,
                                   listed->tensors.dense,     listed->tensors.experts};
            char name[GGUF_NAME_BYTES];

            snprintf(name, sizeof name, "%s", row->needs + strlen("blk.%."));
            for (size_t j = 0; j < COUNT(lists); j++)
                cr_expect_eq(gguf_list_walk(lists[j], is_required, name), 0, "DROP %s %s",
                             row->architecture, row->needs);
        }
    }
}

/* Members can be true: the lists name their tensors. */
Test(fs_hf, conditions_can_be_true)
{
    const struct gguf_name_match match = {.suffix = ""};
    const struct fs_hf_row *row;

    for (size_t n = 0; (row = fs_hf_row_at(n)); n++) {
        struct fs_hf_member member;

        for (const char *at = row->config; fs_hf_next_member(&at, &member);) {
            char name[GGUF_NAME_BYTES];

            if (!member.writer ||
                (strcmp(member.writer, "has") != 0 && strcmp(member.writer, "lacks") != 0))
                continue;
            cr_expect(gguf_tensor_name_expand(member.arguments[0], &match, name) &&
                          gguf_lists_have(gguf_architecture_find(row->architecture), name),
                      "%s of %s: no tensor %s", member.name, row->architecture,
                      member.arguments[0]);
        }
    }
}

Test(fs_hf, layers_have_a_limit)
{
    model_file_begin_test();
    for (uint32_t n = GGUF_MAX_LAYERS; n <= GGUF_MAX_LAYERS + 1; n++) {
        struct gguf_writer *w = gguf_writer_open(3, false);
        struct fs_hf_lines unused = {0}, obstacles = {0};
        struct fs_hf_tensors tensors;
        struct gguf_model *model;
        struct fs_hf_model hf;

        gguf_writer_add_string(w, "general.architecture", "llama");
        gguf_writer_add_u32(w, "llama.block_count", n);
        model = model_file_make(w);
        cr_assert_eq(fs_hf_model_make(model, &hf), 0);
        cr_assert_eq(fs_hf_tensors_find(&hf, fs_hf_row_at(0), &tensors, &unused, &obstacles), 0);
        cr_assert_not_null(obstacles.text.bytes);
        cr_expect_eq(strstr(obstacles.text.bytes, "1025 layers, over 1024") != NULL,
                     n > GGUF_MAX_LAYERS, "%s", obstacles.text.bytes);
        gguf_buffer_free(&unused.text);
        gguf_buffer_free(&obstacles.text);
        fs_hf_tensors_free(&tensors);
        fs_hf_model_free(&hf);
        gguf_close(model);
    }
}

/* Layers that only predict further tokens, however many, are not in the checkpoint. */
Test(fs_hf, layers_that_predict_are_unused, .init = model_file_begin_test)
{
    enum { N_LAYER = 4, N_NEXTN = 3 };
    static const float one = 1;
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct fs_hf_lines unused = {0}, obstacles = {0};
    struct fs_hf_tensors tensors;
    struct gguf_model *model;
    struct fs_hf_model hf;
    char name[] = "blk.0.attn_norm.weight";

    gguf_writer_add_string(w, "general.architecture", "glm4moe");
    gguf_writer_add_u32(w, "glm4moe.block_count", N_LAYER);
    gguf_writer_add_u32(w, "glm4moe.nextn_predict_layers", N_NEXTN);
    for (int i = 0; i < N_LAYER; i++, name[4]++)
        gguf_writer_add_tensor(w, name, strlen(name), 1, (uint64_t[]){1}, DEQUANT_F32, &one,
                               sizeof one);
    model = model_file_make(w);
    cr_assert_eq(fs_hf_model_make(model, &hf), 0);
    cr_assert_eq(fs_hf_tensors_find(&hf, fs_hf_row_of(&hf), &tensors, &unused, &obstacles), 0);
    cr_expect_str_eq(unused.text.bytes, "\"blk.1.attn_norm.weight\"\n\"blk.2.attn_norm.weight\"\n"
                                        "\"blk.3.attn_norm.weight\"\n");
    gguf_buffer_free(&unused.text);
    gguf_buffer_free(&obstacles.text);
    fs_hf_tensors_free(&tensors);
    fs_hf_model_free(&hf);
    gguf_close(model);
}

/* ---- config.json ---- */

enum { N_EMBD = 4, N_HEAD = 2, N_FF = 6, N_VOCAB = 5 };

static void add_tensor(struct gguf_writer *w, const char *name, uint64_t ne0, uint64_t ne1,
                       uint32_t type)
{
    static const char zeros[sizeof(float) * N_EMBD * N_FF];
    const uint64_t ne[] = {ne0, ne1};

    gguf_writer_add_tensor(w, name, strlen(name), ne1 == 1 ? 1 : 2, ne, type, zeros,
                           ne0 * ne1 * (type == DEQUANT_F32 ? 4 : 2));
}

/* Begin a llama of one layer. The matrix ffn_down has a type of its own. */
static struct gguf_writer *begin_llama(uint32_t matrices, uint32_t ffn_down)
{
    static const char *const squares[] = {"attn_q", "attn_k", "attn_v", "attn_output"};
    struct gguf_writer *w = gguf_writer_open(3, false);

    gguf_writer_add_string(w, "general.architecture", "llama");
    gguf_writer_add_u32(w, "llama.block_count", 1);
    gguf_writer_add_u32(w, "llama.context_length", 77);
    gguf_writer_add_u32(w, "llama.embedding_length", N_EMBD);
    gguf_writer_add_u32(w, "llama.feed_forward_length", N_FF);
    gguf_writer_add_u32(w, "llama.attention.head_count", N_HEAD);
    gguf_writer_add_u32(w, "llama.attention.head_count_kv", N_HEAD);
    gguf_writer_add_f32(w, "llama.attention.layer_norm_rms_epsilon", 0x1p-20F);
    gguf_writer_add_f32(w, "llama.rope.freq_base", 5000);
    add_tensor(w, "token_embd.weight", N_EMBD, N_VOCAB, matrices);
    add_tensor(w, "output_norm.weight", N_EMBD, 1, DEQUANT_F32);
    add_tensor(w, "blk.0.attn_norm.weight", N_EMBD, 1, DEQUANT_F32);
    add_tensor(w, "blk.0.ffn_norm.weight", N_EMBD, 1, DEQUANT_F32);
    for (size_t i = 0; i < COUNT(squares); i++) {
        char name[32];

        snprintf(name, sizeof name, "blk.0.%s.weight", squares[i]);
        add_tensor(w, name, N_EMBD, N_EMBD, matrices);
    }
    add_tensor(w, "blk.0.ffn_gate.weight", N_EMBD, N_FF, matrices);
    add_tensor(w, "blk.0.ffn_up.weight", N_EMBD, N_FF, matrices);
    add_tensor(w, "blk.0.ffn_down.weight", N_FF, N_EMBD, ffn_down);
    return w;
}

/* The dtype is the type of most elements: 144 are of `matrices`, 24 of ffn_down, 12 F32. */
Test(fs_hf, config_of_a_llama, .init = model_file_begin_test)
{
    static const struct {
        uint32_t matrices, ffn_down;
        const char *dtype;
    } rows[] = {
        {DEQUANT_F32, DEQUANT_BF16, "\"torch_dtype\": \"float32\""},
        {DEQUANT_F16, DEQUANT_BF16, "\"torch_dtype\": \"float16\""},
        {DEQUANT_BF16, DEQUANT_F16, "\"torch_dtype\": \"bfloat16\""},
    };
    static const char *const members[] = {
        "\"architectures\": [\"LlamaForCausalLM\"]",
        "\"model_type\": \"llama\"",
        "\"num_hidden_layers\": 1,",
        "\"max_position_embeddings\": 77,",
        "\"hidden_size\": 4,",
        "\"intermediate_size\": 6,",
        "\"num_attention_heads\": 2,",
        "\"num_key_value_heads\": 2,",
        "\"rms_norm_eps\": 9.536743e-07,", /* the shortest decimal of 2^-20 */
        "\"rope_theta\": 5000.0,",
        "\"vocab_size\": 5,",
        "\"tie_word_embeddings\": true",
        "\"attention_bias\": false",
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gguf_model *model = model_file_make(begin_llama(rows[i].matrices, rows[i].ffn_down));
        struct fs_tree *tree = tree_file_make_tree(model);
        const struct tree_file file = tree_file_read(tree, "hf/config.json");

        cr_expect_not_null(strstr(file.bytes, rows[i].dtype), "%s", file.bytes);
        for (size_t j = 0; j < COUNT(members); j++)
            cr_expect_not_null(strstr(file.bytes, members[j]), "%s: %s", members[j], file.bytes);
        free(file.bytes);
        fs_tree_free(tree);
        gguf_close(model);
    }
}

/*
 * The factors of rotations are tensor data, which a partial file may lack. config.json has its size
 * before they are there, and can then be read without being opened again.
 */
Test(fs_hf, config_waits_for_factors, .init = model_file_begin_test)
{
    enum { END_BYTES = 32 }; /* the factors and their padding, which end the file */
    static const float factors[] = {1};
    const struct gguf_open_options options = {.partial = true};
    struct gguf_writer *w = begin_llama(DEQUANT_F32, DEQUANT_F32);
    struct gguf_report report = {0};
    const struct fs_image *image;
    struct model_bytes bytes;
    struct gguf_model *model;
    struct fs_tree *tree;
    struct tree_file file;
    uint64_t size_bytes;
    fs_node_index config;
    size_t n_there;
    int descriptor;

    gguf_writer_add_tensor(w, "rope_freqs.weight", 17, 1, (uint64_t[]){COUNT(factors)}, DEQUANT_F32,
                           factors, sizeof factors);
    bytes = model_file_finish(w);
    n_there = bytes.size_bytes - END_BYTES;
    descriptor = model_file_create(bytes.data, n_there);
    cr_assert_eq(model_file_open_descriptor_with(descriptor, &options, &model, &report), 0, "%s",
                 report.first_error.message);
    tree = tree_file_make_tree(model);
    config = tree_file_find(tree, "hf/config.json");
    cr_assert_neq(config, FS_NO_NODE);
    cr_expect_eq(fs_tree_size(tree, config, NULL, &size_bytes), 0);
    cr_expect_eq(fs_tree_open(tree, config, NULL, &image), -EIO);
    cr_assert_eq(pwrite(descriptor, bytes.data + n_there, END_BYTES, (off_t)n_there), END_BYTES);
    file = tree_file_read(tree, "hf/config.json");
    cr_expect_eq(file.size_bytes, size_bytes);
    cr_expect_not_null(strstr(file.bytes, "\"rope_parameters\""), "%s", file.bytes);
    free(file.bytes);
    fs_tree_free(tree);
    gguf_close(model);
    close(descriptor);
    free(bytes.data);
}

/* ---- members that no table describes ---- */

/* The argument, if there is one, is the factor from the key to mscale_all_dim. */
Test(fs_hf, yarn_has_the_scale_of_its_key)
{
    static const struct {
        const char *factor, *members;
    } rows[] = {{NULL, "\"mscale\": 0.5,\n"}, {"10", "\"mscale\": 5.0,\n"}};
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct gguf_model *model;
    struct fs_hf_model hf;

    model_file_begin_test();
    gguf_writer_add_string(w, "general.architecture", "deepseek2");
    gguf_writer_add_string(w, "deepseek2.rope.scaling.type", "yarn");
    gguf_writer_add_f32(w, "deepseek2.rope.scaling.factor", 4);
    gguf_writer_add_f32(w, "deepseek2.rope.scaling.yarn_log_multiplier", 0.5F);
    model = model_file_make(w);
    cr_assert_eq(fs_hf_model_make(model, &hf), 0);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fs_hf_all_factors factors = {.are_read = true};
        struct fs_sink sink = fs_sink_that_grows(10000);
        struct fs_hf_config config = {.hf = &hf, .factors = &factors, .sink = &sink};

        fs_hf_write_rope(&config,
                         &(struct fs_hf_member){.name = "rope", .arguments = {rows[i].factor}});
        fs_sink_write(&sink, "", 1);
        cr_assert_not_null(sink.out);
        cr_expect_not_null(strstr(sink.out, rows[i].members), "%s", sink.out);
        free(sink.out);
    }
    fs_hf_model_free(&hf);
    gguf_close(model);
}

/* Layers without experts are dense; the member counts those before the first one with experts. */
Test(fs_hf, dense_layers_come_first, .init = model_file_begin_test)
{
    enum { N_LAYER = 3 };

    for (unsigned n_dense = 0; n_dense <= N_LAYER; n_dense++) {
        struct gguf_writer *w = gguf_writer_open(3, false);
        struct fs_sink sink = fs_sink_that_grows(1000);
        struct gguf_model *model;
        struct fs_hf_model hf;
        static const char *const others[] = {"[0, 1, 2]", "[1, 2]", "[2]", "[]"};
        char expected[40];

        gguf_writer_add_string(w, "general.architecture", "deepseek2");
        gguf_writer_add_u32(w, "deepseek2.block_count", N_LAYER);
        for (unsigned i = n_dense; i < N_LAYER; i++) {
            char name[32];

            snprintf(name, sizeof name, "blk.%u.ffn_gate_inp.weight", i);
            add_tensor(w, name, N_EMBD, 2, DEQUANT_F32);
        }
        model = model_file_make(w);
        cr_assert_eq(fs_hf_model_make(model, &hf), 0);
        fs_hf_write_n_dense(&(struct fs_hf_config){.hf = &hf, .sink = &sink},
                            &(struct fs_hf_member){.name = "dense"});
        fs_hf_write_layers_with(
            &(struct fs_hf_config){.hf = &hf, .sink = &sink},
            &(struct fs_hf_member){.name = "others", .arguments = {"blk.%.ffn_gate_inp.weight"}});
        fs_sink_write(&sink, "", 1);
        snprintf(expected, sizeof expected, "\"dense\": %u\n\"others\": %s", n_dense,
                 others[n_dense]);
        cr_assert_not_null(sink.out);
        cr_expect_not_null(strstr(sink.out, expected), "%s", sink.out);
        free(sink.out);
        fs_hf_model_free(&hf);
        gguf_close(model);
    }
}

/* config.json of Jamba can only say that every n-th layer has attention. */
Test(fs_hf, layers_of_jamba_repeat, .init = model_file_begin_test)
{
    static const struct {
        unsigned layers[3];
        const char *problem;
    } cases[] = {
        {{1, 3, 5}, ""}, {{0, 3, 6}, ""}, {{1, 3, 4}, "see layer 4"}, {{1, 3, 6}, "see layer 5"}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct gguf_writer *w = gguf_writer_open(3, false);
        struct fs_sink sink = fs_sink_that_counts();
        struct fs_hf_model hf;
        struct fs_hf_config config = {.hf = &hf, .sink = &sink};
        struct gguf_model *model;

        gguf_writer_add_string(w, "general.architecture", "jamba");
        gguf_writer_add_u32(w, "jamba.block_count", cases[i].layers[2] + 1);
        for (size_t j = 0; j < 3; j++) {
            char name[32];

            snprintf(name, sizeof name, "blk.%u.attn_q.weight", cases[i].layers[j]);
            add_tensor(w, name, N_EMBD, 2, DEQUANT_F32);
        }
        model = model_file_make(w);
        cr_assert_eq(fs_hf_model_make(model, &hf), 0);
        fs_hf_write_jamba_layers(&config, NULL);
        cr_expect(cases[i].problem[0] == '\0' ? config.problem[0] == '\0'
                                              : strstr(config.problem, cases[i].problem) != NULL,
                  "%zu: %s", i, config.problem);
        fs_hf_model_free(&hf);
        gguf_close(model);
    }
}

Test(fs_hf, tensors_by_name, .init = model_file_begin_test)
{
    static const char *const names[] = {"blk.1.b", "blk.0.a", "blk.02.b", "blk.10.a", "output"};
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct gguf_model *model;
    struct fs_hf_model hf;

    gguf_writer_add_string(w, "general.architecture", "llama");
    for (size_t i = 0; i < COUNT(names); i++)
        add_tensor(w, names[i], N_EMBD, 2, DEQUANT_F32);
    model = model_file_make(w);
    cr_assert_eq(fs_hf_model_make(model, &hf), 0);
    for (size_t i = 0; i < COUNT(names); i++) {
        const struct gguf_tensor *tensor = fs_hf_tensor(&hf, names[i]);

        cr_assert_not_null(tensor, "%s", names[i]);
        cr_expect(gguf_string_equals(tensor->name, names[i]), "%s", names[i]);
    }
    cr_expect_null(fs_hf_tensor(&hf, "blk.2.b"));
    cr_expect_null(fs_hf_tensor(&hf, "blk.00.a"));
    cr_expect_null(fs_hf_tensor(&hf, "blk.4294967296.a"));
    fs_hf_model_free(&hf);
    gguf_close(model);
}
