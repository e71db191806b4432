/* summary.txt, of models made here. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/fs/tree_file.h"
#include "tests/unit/gguf/model_file.h"

TestSuite(fs_summary, .init = model_file_begin_test);

static void expect_summary(const struct gguf_model *model, const struct fs_findings *findings,
                           const char *expected)
{
    struct gguf_report report = {0};
    struct tree_file file;
    struct fs_tree *tree;

    cr_assert_eq(
        fs_tree_make(model, &(struct fs_tree_options){.findings = findings}, &tree, &report), 0);
    file = tree_file_read(tree, "summary.txt");
    cr_expect_str_eq(file.bytes, expected);
    free(file.bytes);
    fs_tree_free(tree);
}

Test(fs_summary, all_lines)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    static const char *const tokens[] = {"a", "b", "c"};
    static const unsigned char zeros[4096];
    struct fs_findings findings = {0};
    struct gguf_model *model;

    gguf_writer_add_string(w, "general.architecture", "tiny");
    gguf_writer_add_string(w, "general.name", "A \x1b[31mred\xc2\x9b name\xff");
    gguf_writer_add_u32(w, "general.file_type", 15);
    gguf_writer_add_u64(w, "tiny.context_length", 131072);
    gguf_writer_add_u32(w, "tiny.block_count", 2);
    gguf_writer_add_u16(w, "tiny.embedding_length", 256);
    gguf_writer_add_array(w, "tiny.attention.head_count", GGUF_WRITER_U32, 2);
    gguf_writer_u32(w, 16);
    gguf_writer_u32(w, 8);
    gguf_writer_add_u32(w, "tiny.attention.head_count_kv", 4);
    gguf_writer_add_u32(w, "tiny.expert_count", 8);
    gguf_writer_add_u32(w, "tiny.expert_used_count", 2);
    gguf_writer_add_u32(w, "tiny.nextn_predict_layers", 1);
    gguf_writer_add_u32(w, "general.base_model.count", 1);
    gguf_writer_add_string(w, "general.base_model.0.name", "Large");
    gguf_writer_add_string(w, "quantize.imatrix.file", "a.gguf");
    gguf_writer_add_string(w, "tokenizer.ggml.model", "gpt2");
    gguf_writer_add_string(w, "tokenizer.ggml.pre", "default");
    gguf_writer_add_strings(w, "tokenizer.ggml.tokens", tokens, 3);
    gguf_writer_add_string(w, "tokenizer.chat_template", "{{ x }}");
    gguf_writer_add_tensor(w, "q", 1, 2, (uint64_t[]){256, 8}, 12, zeros, 1152);
    gguf_writer_add_tensor(w, "r", 1, 2, (uint64_t[]){256, 8}, 12, zeros, 1152);
    gguf_writer_add_tensor(w, "n", 1, 1, (uint64_t[]){256}, 0, zeros, 1024);
    model = model_file_make(w);
    fs_findings_add(&findings, &(struct gguf_finding){.severity = GGUF_NOTE, .message = "one"});
    fs_findings_add(&findings, &(struct gguf_finding){.severity = GGUF_NOTE, .message = "two"});
    expect_summary(
        model, &findings,
        "name            A \\x1b[31mred\\xc2\\x9b name\\xff\n"
        "kind            language model\n"
        "architecture    tiny\n"
        "parameters      4.35 K (4352)\n"
        "tensors         3\n"
        "quantization    Q4_K_M\n"
        "format          GGUF v3, little-endian\n"
        "size            4.19 KiB (4288 bytes)\n"
        "context length  131072\n"
        "layers          2\n"
        "embedding width 256\n"
        "heads           8 to 16 (4 for keys and values)\n"
        "experts         8 (2 used per token)\n"
        "MTP layers      1\n"
        "base            Large\n"
        "imatrix         a.gguf\n"
        "vocabulary      3 tokens, tokenizer gpt2, pre-tokenizer default\n"
        "chat template   yes\n"
        "check           2 findings; the first: one\n"
        "\n"
        "type       tensors        elements           bytes    share  bits per weight\n"
        "Q4_K             2            4096            2304   69.2 %             4.50\n"
        "F32              1             256            1024   30.8 %            32.00\n"
        "all              3            4352            3328  100.0 %             6.12\n");
    gguf_close(model);
}

/* Keys of a wrong type are left out. */
Test(fs_summary, an_empty_model)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct gguf_model *model;

    gguf_writer_add_u32(w, "general.architecture", 1);
    gguf_writer_add_string(w, "general.file_type", "15");
    gguf_writer_add_u32(w, "tokenizer.ggml.tokens", 1);
    model = model_file_make(w);
    expect_summary(model, NULL,
                   "kind            not recognized\n"
                   "architecture    not given\n"
                   "parameters      0\n"
                   "tensors         0\n"
                   "format          GGUF v3, little-endian\n"
                   "size            160 bytes\n"
                   "check           OK\n");
    gguf_close(model);
}

Test(fs_summary, a_model_without_file_type)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    static const unsigned char zeros[64];
    struct gguf_model *model;
    struct tree_file file;
    struct fs_tree *tree;

    gguf_writer_add_tensor(w, "n", 1, 1, (uint64_t[]){4}, 0, zeros, 16);
    gguf_writer_add_tensor(w, "q", 1, 1, (uint64_t[]){32}, 8, zeros, 34);
    gguf_writer_add_tensor(w, "u", 1, 1, (uint64_t[]){4}, 9999, zeros, 4);
    model = model_file_make(w);
    tree = tree_file_make_tree(model);
    file = tree_file_read(tree, "summary.txt");
    cr_expect_not_null(strstr(file.bytes, "\nquantization    mostly Q8_0\n"), "%s", file.bytes);
    cr_expect_not_null(strstr(file.bytes, "\nunknown          1               4 "), "%s",
                       file.bytes);
    cr_expect_not_null(strstr(file.bytes, "\nsafetensors     no model.safetensors: it has tensors "
                                          "that cannot be decoded\n"),
                       "%s", file.bytes);
    free(file.bytes);
    fs_tree_free(tree);
    gguf_close(model);
}

Test(fs_summary, names_of_file_types)
{
    static const struct {
        uint32_t id;
        const char *line;
    } cases[] = {
        {0, "F32"},           {35, "Q4_0_8_8"}, {140, "IQ4_K"},           {214, "Q4_K_R4"},
        {350, "IQ5_KS_R4"},   {399, "Q8_K_R8"}, {143, "file type 143"},   {400, "file type 400"},
        {39, "file type 39"}, {15, "Q4_K_M"},   {1024, "file type 1024"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gguf_writer *w = gguf_writer_open(3, false);
        char line[64];
        struct gguf_model *model;
        struct tree_file file;
        struct fs_tree *tree;

        gguf_writer_add_u32(w, "general.file_type", cases[i].id);
        model = model_file_make(w);
        tree = tree_file_make_tree(model);
        file = tree_file_read(tree, "summary.txt");
        snprintf(line, sizeof line, "\nquantization    %s\n", cases[i].line);
        cr_expect_not_null(strstr(file.bytes, line), "%u: %s", cases[i].id, file.bytes);
        free(file.bytes);
        fs_tree_free(tree);
        gguf_close(model);
    }
}

/* The line leaves out a count of 0, and a key-value count equal to the count of heads. */
static void expect_heads(uint32_t heads, uint32_t kv_heads, const char *line)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    static const char *const tokens[] = {"a"};
    struct gguf_model *model;
    struct tree_file file;
    struct fs_tree *tree;

    gguf_writer_add_string(w, "general.architecture", "tiny");
    gguf_writer_add_u32(w, "tiny.attention.head_count", heads);
    gguf_writer_add_u32(w, "tiny.attention.head_count_kv", kv_heads);
    gguf_writer_add_strings(w, "tokenizer.ggml.tokens", tokens, 1);
    model = model_file_make(w);
    tree = tree_file_make_tree(model);
    file = tree_file_read(tree, "summary.txt");
    cr_expect_not_null(strstr(file.bytes, "kind            vocabulary without a model\n"), "%s",
                       file.bytes);
    cr_expect_not_null(strstr(file.bytes, "\ntensors         0\n"), "%s", file.bytes);
    cr_expect_null(strstr(file.bytes, "parameters"), "%s", file.bytes);
    if (line)
        cr_expect_not_null(strstr(file.bytes, line), "%s", file.bytes);
    else
        cr_expect_null(strstr(file.bytes, "heads"), "%s", file.bytes);
    free(file.bytes);
    fs_tree_free(tree);
    gguf_close(model);
}

Test(fs_summary, counts_of_heads)
{
    expect_heads(0, 0, NULL);
    expect_heads(8, 8, "\nheads           8\n");
    expect_heads(8, 2, "\nheads           8 (2 for keys and values)\n");
}

/* A list of counts is shown as a range, unless it is empty or longer than any model has layers. */
Test(fs_summary, lists_of_heads)
{
    static const struct {
        uint32_t n;
        bool is_shown;
    } cases[] = {{0, false}, {1, true}, {65536, true}, {65537, false}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct gguf_writer *w = gguf_writer_open(3, false);
        struct gguf_model *model;
        struct tree_file file;
        struct fs_tree *tree;

        gguf_writer_add_string(w, "general.architecture", "llama");
        gguf_writer_add_array(w, "llama.attention.head_count", GGUF_WRITER_U32, cases[i].n);
        for (uint32_t j = 0; j < cases[i].n; j++)
            gguf_writer_u32(w, j == 0 ? 4 : 2);
        model = model_file_make(w);
        tree = tree_file_make_tree(model);
        file = tree_file_read(tree, "summary.txt");
        cr_expect_eq(strstr(file.bytes, "\nheads  ") != NULL, cases[i].is_shown, "%u", cases[i].n);
        free(file.bytes);
        fs_tree_free(tree);
        gguf_close(model);
    }
}
