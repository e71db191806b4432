/* Warnings about keys that do not fit the tensors, are missing, or have another type. */
#include <criterion/criterion.h>
#include <string.h>

#include "gguf/loader_checks.h"
#include "tests/unit/gguf/model_file.h"

TestSuite(gguf_shape_keys, .init = model_file_begin_test);

/* A model with layers 0 to 2, 4 heads of 8 elements and 2 KV heads, with other keys. */
static const struct {
    const char *architecture;
    uint32_t n_blocks, n_heads, n_kv_heads;
    const char *warnings[3]; /* parts of them */
} models[] = {
    {"a", 3, 4, 2, {NULL}},
    {"a", 2, 4, 2, {"\"a.block_count\": 2 is not the number of layers in the names of tensors, 3"}},
    {"a", 4, 4, 2, {"\"a.block_count\": 4 is not"}},
    {"a", 3, 8, 4, {NULL}},
    {"a",
     3,
     4,
     3,
     {"\"a.attention.head_count_kv\": 3 does not divide attention.head_count, 4",
      "\"a.attention.head_count_kv\": 3 does not divide the rows of blk.0.attn_k"}},
    {"a",
     3,
     7,
     1,
     {"\"a.attention.head_count\": 7 does not divide the rows of blk.0.attn_q.weight, "
      "32"}},
    {"a", 0, 0, 0, {NULL}},
    {"", 2, 7, 3, {NULL}},
};

static void add_f32(struct gguf_writer *w, const char *name, uint64_t n_rows)
{
    const uint64_t ne[] = {1, n_rows};
    static const float zeros[32];

    gguf_writer_add_tensor(w, name, strlen(name), 2, ne, 0, zeros, n_rows * sizeof *zeros);
}

struct found {
    enum gguf_rule rule;
    struct gguf_finding list[4];
    size_t count;
};

static void add_finding(void *user, const struct gguf_finding *finding)
{
    struct found *found = user;

    cr_assert_lt(found->count, COUNT(found->list));
    cr_expect_eq(finding->severity, GGUF_WARNING);
    cr_expect_eq(finding->rule, found->rule);
    found->list[found->count++] = *finding;
}

Test(gguf_shape_keys, contradictions_are_found)
{
    for (size_t i = 0; i < COUNT(models); i++) {
        struct gguf_writer *w = gguf_writer_open(3, false);
        struct found found = {.rule = GGUF_RULE_SHAPE_KEYS};
        struct gguf_report report = {.each = add_finding, .user = &found};
        struct gguf_model *model;

        if (*models[i].architecture)
            gguf_writer_add_string(w, "general.architecture", models[i].architecture);
        gguf_writer_add_u32(w, "a.block_count", models[i].n_blocks);
        gguf_writer_add_u32(w, "a.attention.head_count", models[i].n_heads);
        gguf_writer_add_u32(w, "a.attention.head_count_kv", models[i].n_kv_heads);
        add_f32(w, "blk.0.attn_q.weight", 32);
        add_f32(w, "blk.0.attn_k.weight", 16);
        add_f32(w, "blk.2.ffn_up.weight", 8);
        add_f32(w, "v.blk.7.ffn_up.weight", 8);
        model = model_file_make(w);
        gguf_check_shape_keys(model, &report);
        for (size_t j = 0; j < COUNT(models[i].warnings); j++) {
            cr_assert_eq(j < found.count, models[i].warnings[j] != NULL, "%zu: %zu", i, j);
            if (models[i].warnings[j])
                cr_expect_not_null(strstr(found.list[j].message, models[i].warnings[j]), "%zu: %s",
                                   i, found.list[j].message);
        }
        gguf_close(model);
    }
}

/* Make a model with the keys that llama requires, but that key `missing`. */
static struct gguf_writer *begin_llama(const char *missing)
{
    static const char *const counts[] = {"llama.block_count", "llama.embedding_length",
                                         "llama.attention.head_count"};
    static const char epsilon[] = "llama.attention.layer_norm_rms_epsilon";
    struct gguf_writer *w = gguf_writer_open(3, false);

    gguf_writer_add_string(w, "general.architecture", "llama");
    for (size_t i = 0; i < COUNT(counts); i++) {
        if (strcmp(counts[i], missing) != 0)
            gguf_writer_add_u32(w, counts[i], 1);
    }
    if (strcmp(epsilon, missing) != 0)
        gguf_writer_add_f32(w, epsilon, 1e-5f);
    return w;
}

/* Check that there is one warning, with this text, or no warning if `text` is NULL. */
static void expect_needed(struct gguf_writer *w, const char *tensor, const char *text)
{
    struct found found = {.rule = GGUF_RULE_NEEDED_KEYS};
    struct gguf_report report = {.each = add_finding, .user = &found};
    struct gguf_model *model;

    add_f32(w, tensor, 8);
    model = model_file_make(w);
    gguf_check_needed_keys(model, &report);
    cr_expect_eq(found.count, text != NULL, "%s: %zu", text, found.count);
    if (text && found.count == 1)
        cr_expect_not_null(strstr(found.list[0].message, text), "%s", found.list[0].message);
    gguf_close(model);
}

Test(gguf_shape_keys, missing_keys_are_found)
{
    static const char embeddings[] = "token_embd.weight";

    expect_needed(begin_llama(""), embeddings, NULL);
    expect_needed(begin_llama("llama.block_count"), embeddings,
                  "there is no key \"llama.block_count\"");
    expect_needed(begin_llama("llama.attention.head_count"), embeddings,
                  "there is no key \"llama.attention.head_count\"");
    expect_needed(begin_llama("llama.block_count"), "blk.0.attn_q.weight.lora_a", NULL);
}

Test(gguf_shape_keys, types_are_those_of_llama_cpp)
{
    static const char embeddings[] = "token_embd.weight";
    struct gguf_writer *w = begin_llama("llama.block_count");

    gguf_writer_add_u64(w, "llama.block_count", 1);
    expect_needed(w, embeddings, "\"llama.block_count\": its type is uint64, it must be uint32");
    w = begin_llama("");
    gguf_writer_add_f32(w, "llama.context_length", 512);
    expect_needed(w, embeddings, "\"llama.context_length\": its type is float32");
    w = begin_llama("");
    gguf_writer_add_array(w, "llama.context_length", GGUF_WRITER_U32, 1);
    gguf_writer_u32(w, 512);
    expect_needed(w, embeddings, "\"llama.context_length\": its type is array");
    w = begin_llama("llama.attention.layer_norm_rms_epsilon");
    gguf_writer_add_f64(w, "llama.attention.layer_norm_rms_epsilon", 1e-5);
    expect_needed(w, embeddings, "its type is float64, it must be float32");
    w = begin_llama("llama.attention.head_count");
    gguf_writer_add_array(w, "llama.attention.head_count", GGUF_WRITER_I32, 1);
    gguf_writer_i32(w, 1);
    gguf_writer_add_u8(w, "llama.unheard_of", 1);
    gguf_writer_add_u8(w, "llamas.context_length", 1);
    gguf_writer_add_u8(w, "context_length", 1);
    expect_needed(w, embeddings, NULL);
}
