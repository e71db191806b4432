#include "fs/tree/hf/vocabulary.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

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

#define LACKS_VOCABULARY "The file has no vocabulary: "

static const struct {
    const char *name;
    enum fs_tokenizer_kind kind;
    enum fs_notation notation;
    const char *obstacle;
} kinds[] = {
    {"llama", FS_SENTENCEPIECE, FS_WITH_SPACE_MARKS, NULL},
    {"gpt2", FS_BYTE_PAIR, FS_WITH_SPACE_MARKS, NULL},
    {"gemma4", FS_BYTE_PAIR, FS_WITH_SPACE_MARKS, NULL},
    {"bert", FS_WORDPIECE, FS_WITH_SPACE_MARKS, NULL},
    {"t5", FS_UNIGRAM, FS_WITH_SPACE_MARKS, NULL},
    {"none", 0, 0, LACKS_VOCABULARY "the key \"" KEY "model\" says so."},
    {"no_vocab", 0, 0, LACKS_VOCABULARY "the key \"" KEY "model\" says so."},
    {"rwkv", 0, FS_WITH_ESCAPES,
     "The format has no model for the \"" KEY "model\" rwkv, which takes the longest token."},
    {"plamo2", 0, 0, "The format has no model for the \"" KEY "model\" plamo2."},
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
    snprintf(out, MAX_NAME_BYTES, "%.*s", (int)MIN(value->string.length_bytes, MAX_NAME_BYTES),
             value->string.data);
    return out;
}

static const struct gguf_array *find_array(const struct fs_vocabulary *vocabulary, const char *name)
{
    const struct gguf_value *value = find(vocabulary, name);

    return value && value->type == GGUF_ARRAY ? &value->array : NULL;
}

/* Return the array of a key if its elements are strings, or all of one size. */
static const struct gguf_array *find_list(const struct fs_vocabulary *vocabulary, const char *name,
                                          bool of_strings)
{
    const struct gguf_array *array = find_array(vocabulary, name);

    return array && (of_strings ? array->element_type == GGUF_STRING
                                : gguf_value_type_bytes(array->element_type) > 0)
               ? array
               : NULL;
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
        return LACKS_VOCABULARY "there is no key \"" KEY "model\".";
    for (size_t i = 0; i < COUNT(kinds); i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            vocabulary->name = kinds[i].name;
            vocabulary->kind = kinds[i].kind;
            vocabulary->notation = kinds[i].notation;
            return kinds[i].obstacle;
        }
    }
    return "The value of the key \"" KEY "model\" is unknown.";
}

static const char *check_arrays(const struct fs_vocabulary *vocabulary)
{
    const struct gguf_array *tokens = vocabulary->tokens;

    if (!tokens || tokens->n_elements == 0)
        return LACKS_VOCABULARY "there are no strings in the key \"" KEY "tokens\".";
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

static void read_keys(struct fs_vocabulary *vocabulary)
{
    enum gguf_pretokenizer_origin origin;

    vocabulary->tokens = find_list(vocabulary, KEY "tokens", true);
    vocabulary->merges = find_list(vocabulary, KEY "merges", true);
    vocabulary->token_types = find_list(vocabulary, KEY "token_type", false);
    vocabulary->scores = find_list(vocabulary, KEY "scores", false);
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
    vocabulary->context_length = gguf_arch_number(vocabulary->model, "context_length", 0);
}

static void read_ids(struct fs_vocabulary *vocabulary, int32_t end_of_text)
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

/* ---- the index ---- */

int fs_vocabulary_make(const struct gguf_model *model, struct fs_vocabulary **vocabulary)
{
    struct fs_vocabulary *made = calloc(1, sizeof *made);

    *vocabulary = made;
    if (!made)
        return -ENOMEM;
    made->model = model;
    pthread_mutex_init(&made->lock, NULL);
    read_keys(made);
    return 0;
}

static void free_index(struct fs_vocabulary *vocabulary)
{
    free(vocabulary->starts);
    free(vocabulary->types);
    free(vocabulary->slots);
    free(vocabulary->merge_order);
    vocabulary->starts = NULL;
    vocabulary->types = NULL;
    vocabulary->slots = NULL;
    vocabulary->merge_order = NULL;
}

void fs_vocabulary_free(struct fs_vocabulary *vocabulary)
{
    if (!vocabulary)
        return;
    free_index(vocabulary);
    pthread_mutex_destroy(&vocabulary->lock);
    free(vocabulary);
}

/* ---- texts ---- */

/*
 * A slot holds an id plus 1 and, above it, bits of the hash of its text, so that texts are rarely
 * compared in vain. 0 is a free slot.
 */
#define ID_BITS GGUF_TOKEN_ID_BITS

static uint32_t id_of(uint32_t slot)
{
    return (slot & ((1u << ID_BITS) - 1)) - 1;
}

/* Return the slot of the first token with that text, or the free slot for it. */
static uint32_t *find_slot(const struct fs_vocabulary *vocabulary, struct gguf_string text,
                           uint64_t hash)
{
    const uint32_t tag = (uint32_t)(hash >> (32 + ID_BITS));
    uint32_t at = (uint32_t)hash & vocabulary->slot_mask, slot;

    while ((slot = vocabulary->slots[at]) != 0 &&
           (slot >> ID_BITS != tag ||
            gguf_string_compare(fs_vocabulary_text(vocabulary, id_of(slot)), text) != 0))
        at = (at + 1) & vocabulary->slot_mask;
    return &vocabulary->slots[at];
}

static uint64_t hash_of(const struct fs_vocabulary *vocabulary, struct gguf_string text)
{
    return gguf_hash(&vocabulary->key, text.data, (size_t)text.length_bytes);
}

int32_t fs_vocabulary_find(const struct fs_vocabulary *vocabulary, struct gguf_string text)
{
    const uint32_t slot = *find_slot(vocabulary, text, hash_of(vocabulary, text));

    return slot == 0 ? GGUF_NO_TOKEN : (int32_t)id_of(slot);
}

static int32_t find_literal(const void *vocabulary, const char *text)
{
    return fs_vocabulary_find(vocabulary, gguf_string_of(text));
}

/* ---- making the index ---- */

static int index_texts(struct fs_vocabulary *vocabulary)
{
    const struct gguf_array *tokens = vocabulary->tokens;
    struct gguf_cursor cursor = gguf_array_begin(tokens);
    uint32_t n_slots = 512;

    while (n_slots < 2 * vocabulary->n_tokens)
        n_slots *= 2;
    vocabulary->slot_mask = n_slots - 1;
    vocabulary->slots = calloc(n_slots, sizeof *vocabulary->slots);
    vocabulary->starts = calloc((size_t)vocabulary->n_tokens + 1, sizeof *vocabulary->starts);
    if (!vocabulary->slots || !vocabulary->starts)
        return -ENOMEM;
    for (uint32_t id = 0; id < vocabulary->n_tokens; id++) {
        struct gguf_value text;

        gguf_array_next(&cursor, GGUF_STRING, &text);
        vocabulary->starts[id + 1] = vocabulary->starts[id] + tokens->encoding.length_bytes +
                                     (uint32_t)text.string.length_bytes;
    }
    for (uint32_t id = 0; id < vocabulary->n_tokens; id++) {
        const struct gguf_string text = fs_vocabulary_text(vocabulary, id);
        const uint64_t hash = hash_of(vocabulary, text);
        uint32_t *slot = find_slot(vocabulary, text, hash);

        if (*slot == 0)
            *slot = (uint32_t)(hash >> (32 + ID_BITS)) << ID_BITS | (id + 1);
    }
    return 0;
}

static int index_types(struct fs_vocabulary *vocabulary)
{
    vocabulary->types = malloc((size_t)vocabulary->n_tokens + 1);
    if (!vocabulary->types)
        return -ENOMEM;
    memset(vocabulary->types, GGUF_TOKEN_NORMAL, vocabulary->n_tokens);
    for (uint32_t id = 0; vocabulary->token_types && id < vocabulary->n_tokens; id++) {
        const double type = fs_array_number(vocabulary->token_types, id);

        vocabulary->types[id] =
            type >= 0 && type <= GGUF_TOKEN_BYTE ? (uint8_t)type : GGUF_TOKEN_UNDEFINED;
    }
    gguf_correct_token_types(vocabulary->types, find_literal, vocabulary);
    return 0;
}

/* Return a number that is lower the higher the score is. */
static uint32_t rank_of(const struct fs_vocabulary *vocabulary, uint32_t id)
{
    float score;
    uint32_t bits;

    if (vocabulary->kind != FS_SENTENCEPIECE || !vocabulary->scores)
        return id;
    score = (float)fs_array_number(vocabulary->scores, id);
    if (!isfinite(score))
        score = -FLT_MAX;
    score += 0.0f; /* turns -0 into 0 */
    memcpy(&bits, &score, sizeof bits);
    return bits & 0x80000000u ? bits : 0x7fffffffu - bits;
}

static void find_lowest_score(struct fs_vocabulary *vocabulary)
{
    float lowest = FLT_MAX;

    for (uint32_t id = 0; vocabulary->scores && id < vocabulary->n_tokens; id++) {
        const float score = (float)fs_array_number(vocabulary->scores, id);

        if (vocabulary->types[id] == GGUF_TOKEN_NORMAL && score < lowest && isfinite(score))
            lowest = score;
    }
    vocabulary->lowest_score = lowest < FLT_MAX ? lowest : 0;
}

static int compare_numbers(const void *a, const void *b)
{
    const uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;

    return (first > second) - (first < second);
}

/* Sort the tokens by rank; tokens of equal rank stay in the order of ids. */
static int order_merges(struct fs_vocabulary *vocabulary)
{
    const uint32_t n = vocabulary->n_tokens;
    uint64_t *numbers;

    if (fs_has_merges(vocabulary) ||
        (vocabulary->kind != FS_SENTENCEPIECE && vocabulary->kind != FS_BYTE_PAIR))
        return 0;
    numbers = calloc(n, sizeof *numbers);
    vocabulary->merge_order = calloc(n, sizeof *vocabulary->merge_order);
    for (uint32_t id = 0; numbers && id < n; id++)
        numbers[id] = (uint64_t)rank_of(vocabulary, id) << 32 | id;
    if (numbers && vocabulary->merge_order) {
        qsort(numbers, n, sizeof *numbers, compare_numbers);
        for (uint32_t i = 0; i < n; i++)
            vocabulary->merge_order[i] = (uint32_t)numbers[i];
    }
    free(numbers);
    return numbers && vocabulary->merge_order ? 0 : -ENOMEM;
}

static int make_index(struct fs_vocabulary *vocabulary)
{
    int result = gguf_hash_key_make(&vocabulary->key);

    if (result == 0)
        result = index_texts(vocabulary);
    if (result == 0)
        result = index_types(vocabulary);
    if (result == 0)
        result = order_merges(vocabulary);
    if (result < 0) {
        free_index(vocabulary);
        return result;
    }
    find_lowest_score(vocabulary);
    read_ids(vocabulary, find_literal(vocabulary, "<|endoftext|>"));
    return 0;
}

int fs_vocabulary_load(struct fs_vocabulary *vocabulary)
{
    int result = 0;

    pthread_mutex_lock(&vocabulary->lock);
    if (!vocabulary->starts)
        result = make_index(vocabulary);
    pthread_mutex_unlock(&vocabulary->lock);
    return result;
}
