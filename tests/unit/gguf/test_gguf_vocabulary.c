/* Warnings about keys of the vocabulary that do not fit together. */
#include <criterion/criterion.h>
#include <string.h>

#include "gguf/loader_checks.h"
#include "tests/unit/gguf/model_file.h"

TestSuite(gguf_vocabulary, .init = model_file_begin_test);

/* A key of a vocabulary of three tokens, and the warning about it. */
static const struct key {
    const char *name;
    enum gguf_writer_type type;
    int64_t ids[3];
    size_t n_ids;   /* in an array; 0: the value is ids[0] */
    const char *id; /* in the warning; NULL: no warning */
} keys[] = {
    {"tokenizer.ggml.bos_token_id", GGUF_WRITER_U32, {0}, 0, NULL},
    {"tokenizer.ggml.bos_token_id", GGUF_WRITER_U32, {2}, 0, NULL},
    {"tokenizer.ggml.bos_token_id", GGUF_WRITER_U32, {3}, 0, "token id 3 "},
    {"tokenizer.ggml.bos_token_id", GGUF_WRITER_U32, {UINT32_MAX}, 0, NULL},
    {"tokenizer.ggml.bos_token_id", GGUF_WRITER_U32, {UINT32_MAX - 1}, 0, "token id 4294967294 "},
    {"tokenizer.ggml.bos_token_id", GGUF_WRITER_I32, {-1}, 0, NULL},
    {"tokenizer.ggml.bos_token_id", GGUF_WRITER_I32, {-2}, 0, "token id -2 "},
    {"tokenizer.ggml.eos_token_id", GGUF_WRITER_U32, {0, 1, 2}, 3, NULL},
    {"tokenizer.ggml.eos_token_id", GGUF_WRITER_U32, {0, 3, 4}, 3, "token id 3 "},
    {"tokenizer.ggml.eos_token_ids", GGUF_WRITER_I32, {0, 1, -7}, 3, "token id -7 "},
    {"tokenizer.ggml.eos_token_ids", GGUF_WRITER_F32, {7, 7, 7}, 3, NULL},
    {"tokenizer.ggml.other_id", GGUF_WRITER_U32, {3}, 0, NULL},
    {"llama.eos_token_id", GGUF_WRITER_U32, {3}, 0, NULL},
};

static void count_warnings(void *user, const struct gguf_finding *finding)
{
    struct model_notes *found = user;

    cr_expect_eq(finding->severity, GGUF_WARNING);
    found->count++;
    found->last = *finding;
    cr_expect_not_null(strstr(finding->message, "of 3 tokens"), "%s", finding->message);
}

static void write_key(struct gguf_writer *w, const struct key *key)
{
    if (key->n_ids == 0 && key->type == GGUF_WRITER_U32)
        gguf_writer_add_u32(w, key->name, (uint32_t)key->ids[0]);
    else if (key->n_ids == 0)
        gguf_writer_add_i32(w, key->name, (int32_t)key->ids[0]);
    else
        gguf_writer_add_array(w, key->name, key->type, key->n_ids);
    for (size_t i = 0; i < key->n_ids; i++)
        gguf_writer_i32(w, (int32_t)key->ids[i]);
}

Test(gguf_vocabulary, ids_of_special_tokens)
{
    for (size_t i = 0; i < 2 * COUNT(keys); i++) {
        const struct key *key = &keys[i / 2];
        const bool has_tokens = i % 2;
        struct gguf_writer *w = gguf_writer_open(3, i / 2 % 2);
        struct model_notes found = {0};
        struct gguf_report report = {.each = count_warnings, .user = &found};
        struct gguf_model *model;

        if (has_tokens)
            gguf_writer_add_strings(w, "tokenizer.ggml.tokens",
                                    (const char *const[]){"a", "b", "c"}, 3);
        write_key(w, key);
        model = model_file_make(w);
        gguf_check_vocabulary(model, &report);
        cr_expect_eq(found.count, has_tokens && key->id ? 1u : 0u, "%zu: %s", i, key->name);
        if (found.count > 0) {
            cr_expect_eq(found.last.rule, GGUF_RULE_TOKEN_ID);
            cr_expect_not_null(strstr(found.last.message, key->id), "%s", found.last.message);
        }
        gguf_close(model);
    }
}
