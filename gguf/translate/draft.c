#include "gguf/translate/draft.h"

#include "gguf/edits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NAMES = 32 }; /* words of a list of names */

/* ---- words ---- */

bool gguf_words_begin(const char *words, struct gguf_string name)
{
    struct gguf_string word;

    while (gguf_next_word(&words, &word))
        if (name.length_bytes >= word.length_bytes &&
            memcmp(name.data, word.data, word.length_bytes) == 0)
            return true;
    return false;
}

bool gguf_words_end_with(const char *words, const char *end)
{
    struct gguf_string word;

    while (gguf_next_word(&words, &word))
        if (gguf_string_ends_with(word, end))
            return true;
    return false;
}

const char *gguf_split_number(struct gguf_string name, const char *prefix, uint64_t *number,
                              char text[GGUF_NAME_BYTES])
{
    char *end;

    snprintf(text, GGUF_NAME_BYTES, "%.*s", (int)name.length_bytes, name.data);
    if (strncmp(text, prefix, strlen(prefix)) != 0)
        return NULL;
    *number = strtoull(text + strlen(prefix), &end, 10);
    return *end == '.' && *number < GGUF_MAX_TENSORS ? end + 1 : NULL;
}

/* ---- keys ---- */

static void full_name(const char *prefix, const char *name, char full[GGUF_NAME_BYTES])
{
    snprintf(full, GGUF_NAME_BYTES, "%s%s", *name == '/' ? "" : prefix, name + (*name == '/'));
}

static const struct gguf_key *find_source(const struct gguf_draft *draft, const char *name)
{
    char full[GGUF_NAME_BYTES];

    full_name(draft->from, name, full);
    return gguf_find_key(draft->source, full);
}

const struct gguf_key *gguf_draft_key(const struct gguf_draft *draft, const char *name)
{
    char full[GGUF_NAME_BYTES];

    full_name(draft->to, name, full);
    return gguf_find_key(draft->made.model, full);
}

uint64_t gguf_draft_number(const struct gguf_draft *draft, const char *name, uint64_t missing)
{
    const struct gguf_key *key = find_source(draft, name);

    return key && gguf_value_is_integer(&key->value) && key->value.i64 >= 0 ? key->value.u64
                                                                            : missing;
}

struct gguf_array gguf_draft_array(const struct gguf_draft *draft, const char *name)
{
    const struct gguf_key *key = find_source(draft, name);

    return key && key->value.type == GGUF_ARRAY ? key->value.array : (struct gguf_array){0};
}

uint64_t gguf_array_number(const struct gguf_array *array, uint64_t index, uint64_t missing)
{
    const struct gguf_value all = {.type = GGUF_ARRAY, .array = *array};
    const struct gguf_value value = gguf_value_of_layer(&all, index);

    return index < array->n_elements && gguf_value_is_integer(&value) && value.i64 >= 0 ? value.u64
                                                                                        : missing;
}

uint64_t gguf_draft_token(const struct gguf_draft *draft, const char *text)
{
    const struct gguf_array tokens = gguf_draft_array(draft, "/tokenizer.ggml.tokens");
    struct gguf_cursor cursor = gguf_array_begin(&tokens);
    struct gguf_value token;

    for (uint64_t i = 0; tokens.element_type == GGUF_STRING && i < tokens.n_elements; i++) {
        gguf_array_next(&cursor, GGUF_STRING, &token);
        if (gguf_string_equals(token.string, text))
            return i;
    }
    return UINT64_MAX;
}

void gguf_draft_set(struct gguf_draft *draft, const char *name, struct gguf_value value)
{
    const struct gguf_key *key = gguf_draft_key(draft, name);
    char full[GGUF_NAME_BYTES];

    if (draft->made.result < 0 || (key && gguf_value_equals(&key->value, &value)))
        return;
    full_name(draft->to, name, full);
    if (!gguf_set_key(draft->made.model, full, value))
        draft->made.result = -ENOMEM;
    draft->made.is_changed = true;
}

void gguf_draft_set_u32(struct gguf_draft *draft, const char *name, uint64_t number)
{
    gguf_draft_set(draft, name, (struct gguf_value){.type = GGUF_UINT32, .u64 = number});
}

void gguf_draft_set_text(struct gguf_draft *draft, const char *name, const char *text)
{
    const char *copy = gguf_model_print(draft->made.model, "%s", text);

    if (copy)
        gguf_draft_set(draft, name, gguf_value_of_text(copy));
    else
        draft->made.result = -ENOMEM;
}

void gguf_draft_set_array(struct gguf_draft *draft, const char *name, enum gguf_value_type type,
                          const void *elements, uint64_t count)
{
    const size_t n_bytes = count * gguf_value_type_bytes(type);
    void *copy = draft->made.result == 0 ? gguf_model_alloc(draft->made.model, n_bytes) : NULL;

    if (copy && n_bytes > 0)
        memcpy(copy, elements, n_bytes);
    if (copy)
        gguf_draft_set(draft, name, gguf_value_of_numbers(type, copy, count));
    else if (draft->made.result == 0)
        draft->made.result = -ENOMEM;
}

/* Remove a key, which has a prefix unless it begins with a slash. */
static void remove_key(struct gguf_draft *draft, const char *prefix, const char *name)
{
    char full[GGUF_NAME_BYTES];

    full_name(prefix, name, full);
    draft->made.is_changed |= gguf_remove_key(draft->made.model, full) == 0;
}

/* Set a key to "TYPE:VALUE" or "@TENSOR:D". */
static void set_default(struct gguf_draft *draft, const char *name, char *text)
{
    char *colon = strrchr(text, ':'), full[GGUF_NAME_BYTES], edit[2 * GGUF_NAME_BYTES];
    struct gguf_edits edits = {0};

    if (*text == '@') {
        const struct gguf_item *item;

        *colon = '\0';
        item = gguf_draft_item(draft, text + 1);
        for (size_t i = 0; !item && text[1] == '*' && i < draft->made.n_items; i++)
            if (gguf_string_ends_with(draft->made.items[i].like.name, text + 2))
                item = &draft->made.items[i];
        if (item)
            gguf_draft_set_u32(draft, name, item->like.ne[colon[1] - '0']);
        return;
    }
    remove_key(draft, draft->to, name);
    full_name(draft->to, name, full);
    snprintf(edit, sizeof edit, "%s=%s", full, text);
    draft->made.result = gguf_edits_set(&edits, edit, draft->made.report);
    if (draft->made.result == 0)
        draft->made.result = gguf_edits_apply(&edits, &draft->made.model, draft->made.report);
    draft->made.is_changed = true;
    gguf_edits_free(&edits);
}

bool gguf_draft_lacks_text(const struct gguf_draft *draft, const char *name)
{
    const struct gguf_key *key = gguf_draft_key(draft, name);

    return !key ||
           (key->value.type == GGUF_STRING && (key->value.string.length_bytes == 0 ||
                                               gguf_string_equals(key->value.string, "default")));
}

/* Set a key to the first n numbers of an array of n_old, 3 and 4 or 4 and 3; false: it has others.
 */
static bool copy_sections(struct gguf_draft *draft, const char *name, uint64_t n, const char *old,
                          uint64_t n_old)
{
    const struct gguf_array array = gguf_draft_array(draft, old);
    uint32_t numbers[4] = {0};

    for (uint64_t i = 0; i < 3; i++)
        numbers[i] = (uint32_t)gguf_array_number(&array, i, 0);
    if (array.n_elements == n_old)
        gguf_draft_set_array(draft, name, GGUF_INT32, numbers, n);
    return array.n_elements == n_old;
}

/* A word of a list of keys; the character that says what it does is 0 or one of "=~!^-". */
struct key_word {
    char *name, *old, *text, operation;
};

static struct key_word split_key(char *word)
{
    char *end = word + strcspn(word, "<=!~^");
    struct key_word split = {word, word, end + 1, *end};

    if (*word == '-')
        return (struct key_word){word + 1, word + 1, end, '-'};
    if (*end == '^')
        split.old = end + 1;
    *end = '\0';
    if (split.operation == '<') {
        split.old = end + 1;
        end = split.old + strcspn(split.old, "=");
        split.operation = *end;
        split.text = end + 1;
        *end = '\0';
    }
    return split;
}

static void obey_key(struct gguf_draft *draft, struct key_word word)
{
    const struct gguf_key *source;

    switch (word.operation) {
    case '-':
        remove_key(draft, draft->to, word.name);
        return;
    case '~':
        if (gguf_draft_lacks_text(draft, word.name))
            gguf_draft_set_text(draft, word.name, word.text);
        return;
    case '!':
        set_default(draft, word.name, word.text);
        return;
    case '^': /* llama.cpp wants four sections of RoPE; Ollama wrote three */
        copy_sections(draft, word.name, 4, word.old, 3);
        return;
    }
    if (gguf_draft_key(draft, word.name))
        return;
    source = find_source(draft, word.old);
    if (source)
        gguf_draft_set(draft, word.name, source->value);
    else if (word.operation == '=')
        set_default(draft, word.name, word.text);
}

/* Return true if a value is the default "TYPE:VALUE" of a word; arrays and "@…" count as the
 * default. */
static bool equals_default(const struct gguf_value *value, const char *text)
{
    const char *plain = strchr(text, ':') + 1;
    double number;

    if (*text == '@' || value->type == GGUF_ARRAY)
        return true;
    if (value->type == GGUF_STRING)
        return gguf_string_equals(value->string, plain);
    return gguf_value_to_double(value, &number) &&
           (float)number ==
               (value->type == GGUF_BOOL ? (float)(*plain == 't') : strtof(plain, NULL));
}

static void undo_key(struct gguf_draft *draft, struct key_word word)
{
    const struct gguf_key *key = find_source(draft, word.name);
    const bool is_own = draft->source == draft->made.model;
    bool is_gone = strcmp(word.name, word.old) != 0;

    if (!key || (word.operation != '\0' && !strchr("=^", word.operation)) ||
        (is_own && !is_gone && word.operation != '='))
        return;
    if (word.operation == '^')
        is_gone = copy_sections(draft, word.old, 3, word.name, 4);
    else if (word.operation == '=' && equals_default(&key->value, word.text))
        is_gone = true;
    else
        gguf_draft_set(draft, word.old, key->value);
    if (is_own && is_gone)
        remove_key(draft, draft->from, word.name);
}

static void for_each_word(struct gguf_draft *draft, const char *words,
                          void (*obey)(struct gguf_draft *draft, struct key_word word))
{
    struct gguf_string word;
    char copy[GGUF_NAME_BYTES];

    while (draft->made.result == 0 && gguf_next_word(&words, &word)) {
        snprintf(copy, sizeof copy, "%.*s", (int)word.length_bytes, word.data);
        obey(draft, split_key(copy));
    }
}

void gguf_draft_keys(struct gguf_draft *draft, const char *words)
{
    for_each_word(draft, words, obey_key);
}

void gguf_draft_undo_keys(struct gguf_draft *draft, const char *words)
{
    for_each_word(draft, words, undo_key);
}

void gguf_draft_rename_architecture(struct gguf_draft *draft, const char *name)
{
    struct gguf_model *model = draft->made.model;
    const size_t length = strlen(draft->from);
    char *prefix = gguf_model_print(model, "%s.", name);

    if (!prefix) {
        draft->made.result = -ENOMEM;
        return;
    }
    for (uint64_t i = 0; draft->made.result == 0 && i < model->n_keys; i++) {
        struct gguf_string *key = &model->keys[i].name;

        if (gguf_string_starts_with(*key, draft->from)) {
            const int rest = (int)(key->length_bytes - length);
            char *renamed = gguf_model_print(model, "%s%.*s", prefix, rest, key->data + length);

            if (renamed)
                *key = (struct gguf_string){renamed, strlen(renamed)};
            else
                draft->made.result = -ENOMEM;
        }
    }
    draft->from = draft->to = prefix;
    gguf_draft_set_text(draft, "/general.architecture", name);
}

/* ---- tensors ---- */

struct gguf_item *gguf_draft_item(const struct gguf_draft *draft, const char *name)
{
    const size_t index = gguf_find_item(&draft->made, gguf_string_of(name));

    return index < draft->made.n_items ? &draft->made.items[index] : NULL;
}

/* Replace part of a name, see struct gguf_layout for where; `is_end`: at the end of the name. */
static void rename_part(struct gguf_draft *draft, struct gguf_item *item, struct gguf_string part,
                        struct gguf_string by, bool is_end)
{
    const struct gguf_string name = item->like.name;
    const char *at = name.data, *end = at + name.length_bytes;

    for (; (uint64_t)(end - at) >= part.length_bytes; at++) {
        const char *behind = at + part.length_bytes;

        if (memcmp(at, part.data, part.length_bytes) == 0 &&
            (behind == end || (!is_end && (*behind == '.' || behind[-1] == '.')))) {
            item->like.name =
                gguf_compose_name(&draft->made, "%.*s%.*s%.*s", (int)(at - name.data), name.data,
                                  (int)by.length_bytes, by.data, (int)(end - behind), behind);
            return;
        }
        if (*part.data != '.')
            return;
    }
}

void gguf_draft_names(struct gguf_draft *draft, struct gguf_item *item, const char *words,
                      bool is_back)
{
    struct gguf_string list[MAX_NAMES];
    size_t n = 0;

    while (n < MAX_NAMES && gguf_next_word(&words, &list[n]))
        n++;
    for (size_t i = 0; draft->made.result == 0 && i < n; i++) {
        const struct gguf_string word = list[is_back ? n - 1 - i : i];
        const char *arrow = memchr(word.data, '>', word.length_bytes), *new = arrow + 1;
        const bool is_end = arrow[-1] == '$';
        const struct gguf_string parts[] = {{word.data, (uint64_t)(arrow - word.data) - is_end},
                                            {new, word.length_bytes - (uint64_t)(new - word.data)}};

        rename_part(draft, item, parts[is_back], parts[!is_back], is_end);
    }
}

void gguf_draft_drop(struct gguf_draft *draft, struct gguf_item *item)
{
    item->is_dropped = true;
    draft->made.is_changed = true;
}

void gguf_draft_set_type(struct gguf_draft *draft, struct gguf_item *item, uint32_t type_id)
{
    const struct dequant_type *type = dequant_type_by_id(type_id);

    draft->made.is_changed |= item->like.type != type;
    item->like.type = type;
}

float *gguf_draft_make_data(struct gguf_draft *draft, struct gguf_item *item, uint64_t n_elements)
{
    float *numbers = gguf_model_alloc(draft->made.model, n_elements * sizeof *numbers);

    if (!numbers)
        draft->made.result = -ENOMEM;
    *item = gguf_begin_item(&draft->made, &item->like, item->like.name);
    gguf_draft_set_type(draft, item, DEQUANT_F32);
    gguf_append_piece(&draft->made, item,
                      &(struct gguf_piece){.n_elements = n_elements, .bytes = numbers});
    return draft->made.result == 0 ? numbers : NULL;
}
