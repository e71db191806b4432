#include "gguf/vocabulary.h"

#include <inttypes.h>

#define TOKENS "tokenizer.ggml.tokens"

static const struct gguf_key *find_list(const struct gguf_model *model, const char *name)
{
    const struct gguf_key *key = gguf_find_key(model, name);

    return key && key->value.type == GGUF_ARRAY ? key : NULL;
}

/* Check the length of the lists with an element for each token. */
static void check_lengths(const struct gguf_model *model, uint64_t n_tokens,
                          struct gguf_report *report)
{
    static const char *const names[] = {"tokenizer.ggml.scores", "tokenizer.ggml.token_type"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct gguf_key *key = find_list(model, names[i]);

        if (key && key->value.array.n_elements != n_tokens)
            gguf_warning(report, GGUF_RULE_VOCABULARY, gguf_key_place(key),
                         "it has %" PRIu64 " elements, but \"" TOKENS "\" has %" PRIu64,
                         key->value.array.n_elements, n_tokens);
    }
}

static bool is_token_id_key(struct gguf_string name)
{
    return gguf_string_starts_with(name, "tokenizer.ggml.") &&
           (gguf_string_ends_with(name, "_token_id") || gguf_string_ends_with(name, "_token_ids"));
}

/*
 * Return true if the value is an integer without a token. A negative one is a huge u64; llama.cpp
 * writes -1 where a vocabulary has no token of the kind (LLAMA_TOKEN_NULL).
 */
static bool is_outside(const struct gguf_value *value, uint64_t n_tokens)
{
    return gguf_value_is_integer(value) && value->u64 >= n_tokens && value->u64 != UINT32_MAX &&
           value->i64 != -1;
}

static void warn_of_id(const struct gguf_key *key, const struct gguf_value *id, uint64_t n_tokens,
                       struct gguf_report *report)
{
    gguf_warning(report, GGUF_RULE_TOKEN_ID, gguf_key_place(key),
                 "token id %" PRId64 " is outside the vocabulary of %" PRIu64 " tokens", id->i64,
                 n_tokens);
}

static void check_ids(const struct gguf_key *key, uint64_t n_tokens, struct gguf_report *report)
{
    const struct gguf_array *array = &key->value.array;
    struct gguf_cursor cursor;
    struct gguf_value id;

    if (is_outside(&key->value, n_tokens))
        warn_of_id(key, &key->value, n_tokens, report);
    if (key->value.type != GGUF_ARRAY || !gguf_value_type_is_integer(array->element_type))
        return;
    cursor = gguf_array_begin(array);
    for (uint64_t i = 0; i < array->n_elements; i++) {
        gguf_array_next(&cursor, array->element_type, &id);
        if (is_outside(&id, n_tokens)) {
            warn_of_id(key, &id, n_tokens, report);
            return; /* one warning per key */
        }
    }
}

void gguf_check_vocabulary(const struct gguf_model *model, struct gguf_report *report)
{
    const struct gguf_key *tokens = find_list(model, TOKENS);

    if (!tokens)
        return;
    check_lengths(model, tokens->value.array.n_elements, report);
    for (uint64_t i = 0; i < model->n_keys; i++) {
        /* Parsers of old files make the ids that programs of the time used. */
        if (model->keys[i].file_offset > 0 && is_token_id_key(model->keys[i].name))
            check_ids(&model->keys[i], tokens->value.array.n_elements, report);
    }
}
