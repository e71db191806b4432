#include "fs/tree/hf/vocabulary_keys.h"

#include <stdio.h>
#include <string.h>

double fs_array_number(const struct gguf_array *array, uint64_t index)
{
    const struct gguf_value value = fs_array_element(array, index);
    double number = 0;

    gguf_value_to_double(&value, &number);
    return number;
}

struct gguf_value fs_array_element(const struct gguf_array *array, uint64_t index)
{
    const enum gguf_value_type type = array->element_type;
    struct gguf_cursor cursor = gguf_array_begin(array);
    struct gguf_value value;

    cursor.offset += index * gguf_value_type_bytes(type);
    gguf_array_next(&cursor, type, &value);
    return value;
}

#define KEY           "tokenizer.ggml."
#define COUNT(list)   (sizeof(list) / sizeof *(list))
#define ADD_BOS_TOKEN KEY "add_bos_token"

/* Values of keys that matter here are shorter. */
#define MAX_NAME_BYTES 128u

static const struct {
    const char *name;
    enum fs_tokenizer_kind kind;
} kinds[] = {
    {"llama", FS_SENTENCEPIECE}, {"gpt2", FS_BYTE_PAIR}, {"gemma4", FS_BYTE_PAIR},
    {"bert", FS_WORDPIECE},      {"t5", FS_UNIGRAM},
};

static const struct gguf_value *find(const struct fs_vocabulary *vocabulary, const char *name)
{
    const struct gguf_key *key = gguf_find_key(vocabulary->model, name);

    return key ? &key->value : NULL;
}

/* Return the string of a key in `out`, or NULL if it has none. A longer one is cut. */
static const char *find_name(const struct fs_vocabulary *vocabulary, const char *name,
                             char out[MAX_NAME_BYTES])
{
    const struct gguf_value *value = find(vocabulary, name);

    if (!value || value->type != GGUF_STRING)
        return NULL;
    snprintf(out, MAX_NAME_BYTES, "%.*s",
             value->string.length_bytes < MAX_NAME_BYTES ? (int)value->string.length_bytes
                                                         : (int)MAX_NAME_BYTES,
             value->string.data);
    return out;
}

static const struct gguf_array *find_array(const struct fs_vocabulary *vocabulary, const char *name)
{
    const struct gguf_value *value = find(vocabulary, name);

    return value && value->type == GGUF_ARRAY ? &value->array : NULL;
}

static const struct gguf_array *find_numbers(const struct fs_vocabulary *vocabulary,
                                             const char *name)
{
    const struct gguf_array *array = find_array(vocabulary, name);

    return array && gguf_value_type_bytes(array->element_type) > 0 ? array : NULL;
}

static const struct gguf_array *find_strings(const struct fs_vocabulary *vocabulary,
                                             const char *name)
{
    const struct gguf_array *array = find_array(vocabulary, name);

    return array && array->element_type == GGUF_STRING ? array : NULL;
}

static bool is_true(const struct fs_vocabulary *vocabulary, const char *name, bool otherwise)
{
    const struct gguf_value *value = find(vocabulary, name);

    if (!value)
        return otherwise;
    return value->type == GGUF_BOOL && value->boolean;
}

/* Return true for a table that a reader of it accepts; see charsmap.h of the runner. */
static bool is_charsmap(const struct gguf_array *array)
{
    uint64_t n_unit_bytes = 0;

    if (!gguf_value_type_is_integer(array->element_type) || array->n_elements < sizeof(uint32_t))
        return false;
    for (unsigned i = 0; i < sizeof(uint32_t); i++)
        n_unit_bytes |= (uint64_t)fs_array_byte(array, i) << (8 * i);
    return n_unit_bytes <= array->n_elements - sizeof(uint32_t) &&
           n_unit_bytes % sizeof(uint32_t) == 0;
}

/* ---- obstacles ---- */

static const char *find_kind(struct fs_vocabulary *vocabulary)
{
    char name[MAX_NAME_BYTES];

    if (!find_name(vocabulary, KEY "model", name))
        return "The file has no vocabulary: there is no key \"" KEY "model\".";
    for (size_t i = 0; i < COUNT(kinds); i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            vocabulary->name = kinds[i].name;
            vocabulary->kind = kinds[i].kind;
            vocabulary->notation = FS_WITH_SPACE_MARKS;
            return NULL;
        }
    }
    if (strcmp(name, "rwkv") == 0)
        vocabulary->notation = FS_WITH_ESCAPES;
    if (strcmp(name, "none") == 0 || strcmp(name, "no_vocab") == 0)
        return "The file has no vocabulary: the key \"" KEY "model\" says so.";
    if (strcmp(name, "rwkv") == 0)
        return "The format has no model for the \"" KEY "model\" rwkv, which takes the longest "
               "token.";
    if (strcmp(name, "plamo2") == 0)
        return "The format has no model for the \"" KEY "model\" plamo2.";
    return "The value of the key \"" KEY "model\" is unknown.";
}

static const char *check_arrays(const struct fs_vocabulary *vocabulary)
{
    const struct gguf_array *tokens = vocabulary->tokens;

    if (!tokens || tokens->n_elements == 0)
        return "The file has no vocabulary: there are no strings in the key \"" KEY "tokens\".";
    if (tokens->n_elements > GGUF_MAX_TOKENS || tokens->size_bytes > GGUF_MAX_TOKENS_BYTES)
        return "The key \"" KEY "tokens\" has more than 1048575 tokens or 256 MiB.";
    if (vocabulary->token_types && vocabulary->token_types->n_elements < tokens->n_elements)
        return "The key \"" KEY "token_type\" has fewer elements than \"" KEY "tokens\".";
    if (vocabulary->scores && vocabulary->scores->n_elements < tokens->n_elements)
        return "The key \"" KEY "scores\" has fewer elements than \"" KEY "tokens\".";
    if (!vocabulary->merges && find(vocabulary, KEY "merges"))
        return "The key \"" KEY "merges\" is not an array of strings.";
    if (vocabulary->kind == FS_UNIGRAM && !vocabulary->scores)
        return "There is no key \"" KEY "scores\" with numbers.";
    if (vocabulary->charsmap && !is_charsmap(vocabulary->charsmap))
        return "The key \"" KEY "precompiled_charsmap\" is damaged.";
    return NULL;
}

/* Without the model's expressions, texts would be split differently, and the ids would be wrong. */
static const char *name_unknown_pre(struct fs_vocabulary *vocabulary)
{
    snprintf(vocabulary->obstacle_text, sizeof vocabulary->obstacle_text,
             "The value %s of the key \"" KEY
             "pre\" is unknown. If a known one, such as llama-bpe or "
             "qwen2, splits texts in the same way, set it with --set " KEY "pre=str:NAME.",
             gguf_quote(find(vocabulary, KEY "pre")->string).text);
    return vocabulary->obstacle_text;
}

/* ---- the keys ---- */

static enum gguf_pretokenizer_origin choose_conventions(struct fs_vocabulary *vocabulary)
{
    enum gguf_pretokenizer_origin origin = GGUF_PRE_KNOWN;
    char name[MAX_NAME_BYTES], pre[MAX_NAME_BYTES], architecture[MAX_NAME_BYTES];
    const char *found_pre = find_name(vocabulary, KEY "pre", pre);
    const char *found_architecture = find_name(vocabulary, "general.architecture", architecture);

    vocabulary->strip_rule = gguf_strip_rule_find(find_name(vocabulary, "general.name", name),
                                                  found_pre, found_architecture);
    if (vocabulary->kind == FS_BYTE_PAIR)
        vocabulary->pretokenizer = gguf_pretokenizer_choose(
            vocabulary->name, found_pre, found_architecture ? found_architecture : "", &origin);
    if (vocabulary->pretokenizer && !vocabulary->pretokenizer->is_raw)
        vocabulary->notation = FS_IN_BYTE_ALPHABET;
    return origin;
}

static void read_context_length(struct fs_vocabulary *vocabulary)
{
    char architecture[MAX_NAME_BYTES], name[MAX_NAME_BYTES + 32];
    const struct gguf_value *value;

    if (!find_name(vocabulary, "general.architecture", architecture))
        return;
    snprintf(name, sizeof name, "%s.context_length", architecture);
    value = find(vocabulary, name);
    if (value && gguf_value_type_is_integer(value->type))
        vocabulary->context_length = value->u64;
}

void fs_vocabulary_read_keys(struct fs_vocabulary *vocabulary)
{
    enum gguf_pretokenizer_origin origin;

    vocabulary->tokens = find_strings(vocabulary, KEY "tokens");
    vocabulary->merges = find_strings(vocabulary, KEY "merges");
    vocabulary->token_types = find_numbers(vocabulary, KEY "token_type");
    vocabulary->scores = find_numbers(vocabulary, KEY "scores");
    vocabulary->obstacle = find_kind(vocabulary);
    if (vocabulary->obstacle)
        return;
    origin = choose_conventions(vocabulary);
    if (vocabulary->kind == FS_UNIGRAM)
        vocabulary->charsmap = find_array(vocabulary, KEY "precompiled_charsmap");
    if (vocabulary->charsmap && vocabulary->charsmap->n_elements == 0)
        vocabulary->charsmap = NULL;
    vocabulary->obstacle = check_arrays(vocabulary);
    if (!vocabulary->obstacle && origin == GGUF_PRE_UNKNOWN)
        vocabulary->obstacle = name_unknown_pre(vocabulary);
    if (vocabulary->obstacle)
        return;
    vocabulary->n_tokens = (uint32_t)vocabulary->tokens->n_elements;
    vocabulary->is_space_added =
        is_true(vocabulary, KEY "add_space_prefix",
                gguf_tokenizer_defaults_find(vocabulary->name)->is_space_added);
    vocabulary->is_space_merged = is_true(vocabulary, KEY "remove_extra_whitespaces", false);
    vocabulary->is_lowered = is_true(vocabulary, KEY "normalizer.lowercase", true);
    vocabulary->is_stripped =
        is_true(vocabulary, KEY "normalizer.strip_accents", vocabulary->is_lowered);
    read_context_length(vocabulary);
}

void fs_vocabulary_read_ids(struct fs_vocabulary *vocabulary, int32_t end_of_text)
{
    struct gguf_special_ids *ids = &vocabulary->ids;

    *ids = gguf_tokenizer_defaults_find(vocabulary->name)->ids;
    for (size_t i = 0; i < GGUF_N_SPECIAL_KEYS; i++) {
        const struct gguf_value *value = find(vocabulary, gguf_special_keys[i].name);
        int32_t *id = gguf_special_id(ids, &gguf_special_keys[i]);

        if (*id >= (int32_t)vocabulary->n_tokens)
            *id = GGUF_NO_TOKEN;
        /* An id out of range counts as missing: many files have one. */
        if (value && gguf_value_type_is_integer(value->type) && value->u64 < vocabulary->n_tokens)
            *id = (int32_t)value->u64;
    }
    ids->is_bos_added = is_true(vocabulary, ADD_BOS_TOKEN, ids->is_bos_added);
    ids->is_eos_added = is_true(vocabulary, KEY "add_eos_token", ids->is_eos_added);
    gguf_special_ids_complete(ids, vocabulary->name, vocabulary->pretokenizer,
                              find(vocabulary, ADD_BOS_TOKEN) != NULL, end_of_text);
}
