#include "gguf/loader_checks.h"

#include "gguf/models/key_lists.h"
#include "gguf/models/tensor_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Return the architecture's key if its value is an integer above 0, else NULL. */
static const struct gguf_key *find_count(const struct gguf_model *model, const char *name)
{
    const struct gguf_key *key = gguf_find_arch_key(model, name);

    return key && gguf_value_is_integer(&key->value) && key->value.i64 > 0 ? key : NULL;
}

static void warn(const struct gguf_key *key, struct gguf_report *report, const char *relation,
                 const char *of, uint64_t number)
{
    gguf_warning(report, GGUF_RULE_SHAPE_KEYS, gguf_key_place(key), "%" PRIu64 " %s %s, %" PRIu64,
                 key->value.u64, relation, of, number);
}

/* Return one more than the last number in names like blk.7.attn_q.weight. */
static uint64_t count_layers(const struct gguf_model *model)
{
    uint64_t n_layers = 0;

    for (uint64_t i = 0; i < model->n_tensors; i++) {
        struct gguf_string rest;
        const uint32_t number = gguf_block_of(gguf_name_of(&model->tensors[i]), &rest);

        if (number != GGUF_NO_BLOCK && number >= n_layers)
            n_layers = number + 1;
    }
    return n_layers;
}

/* Warn if the number of heads does not divide the rows of a projection of the first layer. */
static void check_rows(const struct gguf_model *model, const struct gguf_key *heads,
                       const char *name, struct gguf_report *report)
{
    const struct gguf_tensor *tensor = gguf_tensor_named(model, name);

    if (heads && tensor && tensor->ne[1] % heads->value.u64 != 0)
        warn(heads, report, "does not divide the rows of", name, tensor->ne[1]);
}

void gguf_check_shape_keys(const struct gguf_model *model, struct gguf_report *report)
{
    const struct gguf_key *blocks = find_count(model, "block_count");
    const struct gguf_key *heads = find_count(model, "attention.head_count");
    const struct gguf_key *kv_heads = find_count(model, "attention.head_count_kv");
    const uint64_t n_layers = count_layers(model);

    if (blocks && n_layers > 0 && blocks->value.u64 != n_layers)
        warn(blocks, report, "is not", "the number of layers in the names of tensors", n_layers);
    if (heads && kv_heads && heads->value.u64 % kv_heads->value.u64 != 0)
        warn(kv_heads, report, "does not divide", "attention.head_count", heads->value.u64);
    check_rows(model, heads, "blk.0.attn_q.weight", report);
    check_rows(model, kv_heads, "blk.0.attn_k.weight", report);
}

const char *gguf_wrong_type(const char *name, const struct gguf_value *value, bool any_width)
{
    static const enum gguf_value_type types[] = {[GGUF_KEY_UINT32] = GGUF_UINT32,
                                                 [GGUF_KEY_FLOAT32] = GGUF_FLOAT32,
                                                 [GGUF_KEY_BOOL] = GGUF_BOOL,
                                                 [GGUF_KEY_STRING] = GGUF_STRING};
    const enum gguf_value_type expected = types[gguf_key_type(name)];
    const bool is_array = value->type == GGUF_ARRAY && gguf_key_may_be_array(name);
    const enum gguf_value_type type = is_array ? value->array.element_type : value->type;
    const bool is_number =
        gguf_value_type_is_integer(type) || (type == GGUF_FLOAT64 && expected == GGUF_FLOAT32);

    if (type == expected || (is_array && type == GGUF_BOOL)) /* bools: layers with a window */
        return NULL;
    if ((any_width || is_array) && is_number &&
        (expected == GGUF_UINT32 || expected == GGUF_FLOAT32))
        return NULL;
    return gguf_value_type_name(expected);
}

static bool has_key(const void *model, const char *key)
{
    return key[0] == '/' ? gguf_find_key(model, key + 1) : gguf_find_arch_key(model, key);
}

/* Warn of a listed key, which is written without "ARCHITECTURE.", of another type or length. */
static void check_type(const struct gguf_key *key, const char *name, const struct gguf_key *blocks,
                       struct gguf_report *report)
{
    const char *type = gguf_wrong_type(name, &key->value, false);

    if (type)
        gguf_warning(report, GGUF_RULE_NEEDED_KEYS, gguf_key_place(key),
                     "its type is %s, it must be %s", gguf_value_type_name(key->value.type), type);
    else if (blocks && key->value.type == GGUF_ARRAY && gguf_key_may_be_array(name) &&
             strcmp(name, "rope.dimension_sections") != 0 &&
             key->value.array.n_elements != blocks->value.u64)
        gguf_warning(report, GGUF_RULE_SHAPE_KEYS, gguf_key_place(key),
                     "its length is %" PRIu64 ", it must be the block_count, %" PRIu64,
                     key->value.array.n_elements, blocks->value.u64);
}

void gguf_check_needed_keys(const struct gguf_model *model, struct gguf_report *report)
{
    const struct gguf_key *blocks = find_count(model, "block_count");
    const struct gguf_architecture *row;
    char architecture[64], name[GGUF_KEY_NAME_BYTES];
    struct gguf_string missing;

    gguf_get_text(model, "general.architecture", architecture, sizeof architecture - 1);
    row = gguf_architecture_find(architecture);
    if (!row || !gguf_tensor_named(model, "token_embd.weight"))
        return;
    strcat(architecture, ".");
    for (uint64_t i = 0; i < model->n_keys; i++) {
        const struct gguf_string key = model->keys[i].name;
        const size_t start = strlen(architecture);

        if (!gguf_string_starts_with(key, architecture) || key.length_bytes - start >= sizeof name)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(key.length_bytes - start), key.data + start);
        if (gguf_key_rule(row, name, NULL) != GGUF_KEY_UNUSED)
            check_type(&model->keys[i], name, blocks, report);
    }
    if (gguf_check_keys(row, has_key, model, &missing))
        return;
    if (missing.data[0] == '/') {
        architecture[0] = '\0';
        missing = (struct gguf_string){missing.data + 1, missing.length_bytes - 1};
    }
    gguf_warning(report, GGUF_RULE_NEEDED_KEYS, GGUF_NO_PLACE, "there is no key \"%s%.*s\"",
                 architecture, (int)missing.length_bytes, missing.data);
}

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

static void check_ids(const struct gguf_key *key, uint64_t n_tokens, struct gguf_report *report)
{
    const bool is_array = key->value.type == GGUF_ARRAY;
    const struct gguf_array *array = &key->value.array;
    struct gguf_cursor cursor = {0};
    struct gguf_value id = key->value;

    if (is_array)
        cursor = gguf_array_begin(array);
    for (uint64_t i = 0; i < (is_array ? array->n_elements : 1); i++) {
        if (is_array)
            gguf_array_next(&cursor, array->element_type, &id);
        if (!is_outside(&id, n_tokens))
            continue;
        gguf_warning(report, GGUF_RULE_TOKEN_ID, gguf_key_place(key),
                     "token id %" PRId64 " is outside the vocabulary of %" PRIu64 " tokens", id.i64,
                     n_tokens);
        return; /* one warning per key */
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
