#include "gguf/translate/draft.h"

#include "gguf/edits.h"
#include "gguf/made_values.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 256 };

/* ---- keys ---- */

static void full_name(const char *prefix, const char *name, char full[NAME_BYTES])
{
    snprintf(full, NAME_BYTES, "%s%s", *name == '/' ? "" : prefix, name + (*name == '/'));
}

static const struct gguf_key *find_source(const struct gguf_draft *draft, const char *name)
{
    char full[NAME_BYTES];

    full_name(draft->from, name, full);
    return gguf_find_key(draft->source, full);
}

struct gguf_key *gguf_draft_key(const struct gguf_draft *draft, const char *name)
{
    char full[NAME_BYTES];

    full_name(draft->to, name, full);
    return (struct gguf_key *)(uintptr_t)gguf_find_key(draft->made.model, full);
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
    struct gguf_cursor cursor = gguf_array_begin(array);
    struct gguf_value value = {0};

    if (index >= array->n_elements || !gguf_value_type_is_integer(array->element_type))
        return missing;
    for (uint64_t i = 0; i <= index; i++)
        gguf_array_next(&cursor, array->element_type, &value);
    return value.i64 >= 0 ? value.u64 : missing;
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
    struct gguf_key *key = gguf_draft_key(draft, name);
    char full[NAME_BYTES];

    if (draft->made.result < 0 || (key && gguf_value_equals(&key->value, &value)))
        return;
    full_name(draft->to, name, full);
    if (key)
        key->value = value;
    else
        draft->made.result = gguf_add_key(draft->made.model, full, value);
    draft->made.is_changed = true;
}

void gguf_draft_set_u32(struct gguf_draft *draft, const char *name, uint64_t number)
{
    gguf_draft_set(draft, name, (struct gguf_value){.type = GGUF_UINT32, .u64 = number});
}

void gguf_draft_set_numbers(struct gguf_draft *draft, const char *name, enum gguf_value_type type,
                            const uint32_t *numbers, uint64_t count)
{
    const unsigned width = gguf_value_type_bytes(type);
    struct gguf_array_builder builder;

    if (draft->made.result == 0)
        draft->made.result =
            gguf_make_array(draft->made.model, type, count, count * width, &builder);
    for (uint64_t i = 0; draft->made.result == 0 && i < count; i++)
        if (width == 1)
            *builder.at++ = (uint8_t)numbers[i];
        else
            gguf_put_u32(&builder, numbers[i]);
    if (draft->made.result == 0)
        gguf_draft_set(draft, name,
                       (struct gguf_value){.type = GGUF_ARRAY, .array = builder.array});
}

/* Set a key to "TYPE:VALUE" or "@TENSOR:D". */
static void set_text(struct gguf_draft *draft, const char *name, const char *text)
{
    const char *colon = strrchr(text, ':');
    struct gguf_edits edits = {0};
    char tensor_name[NAME_BYTES], full[NAME_BYTES], edit[2 * NAME_BYTES];

    if (*text == '@') {
        const struct gguf_item *item;

        snprintf(tensor_name, sizeof tensor_name, "%.*s", (int)(colon - text - 1), text + 1);
        item = gguf_draft_item(draft, tensor_name);
        if (item)
            gguf_draft_set_u32(draft, name, item->like.ne[colon[1] - '0']);
        return;
    }
    full_name(draft->to, name, full);
    gguf_remove_key(draft->made.model, full);
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

/* llama.cpp wants four sections of RoPE; Ollama wrote three. */
static void pad_array(struct gguf_draft *draft, const char *name, const char *old)
{
    const struct gguf_array array = gguf_draft_array(draft, old);
    uint32_t numbers[4] = {0};

    for (uint64_t i = 0; i < 3; i++)
        numbers[i] = (uint32_t)gguf_array_number(&array, i, 0);
    if (array.n_elements == 3)
        gguf_draft_set_numbers(draft, name, GGUF_INT32, numbers, 4);
}

/* Return true if the word says what the key becomes, whatever the file has. */
static bool is_final(char operation)
{
    return operation == '~' || operation == '!' || operation == '^';
}

static void obey_key(struct gguf_draft *draft, char *word)
{
    char *end = word + strcspn(word, "<=!~^"), *old = NULL, operation = *end, *text = end + 1;
    const struct gguf_key *source;
    char full[NAME_BYTES];

    if (*word == '-') {
        full_name(draft->to, word + 1, full);
        if (gguf_remove_key(draft->made.model, full) == 0)
            draft->made.is_changed = true;
        return;
    }
    *end = '\0';
    if (operation == '~' && gguf_draft_lacks_text(draft, word))
        gguf_draft_set(
            draft, word,
            (struct gguf_value){
                .type = GGUF_STRING,
                .string = {gguf_model_print(draft->made.model, "%s", text), strlen(text)}});
    if (operation == '!')
        set_text(draft, word, text);
    if (operation == '^')
        pad_array(draft, word, text);
    if (is_final(operation) || gguf_draft_key(draft, word))
        return;
    if (operation == '<') {
        old = text;
        text = old + strcspn(old, "=");
        operation = *text;
        *text++ = '\0';
    }
    source = find_source(draft, old ? old : word);
    if (source)
        gguf_draft_set(draft, word, source->value);
    else if (operation == '=')
        set_text(draft, word, text);
}

/* Call `obey` for a copy of each word. */
static void for_each_word(struct gguf_draft *draft, const char *words,
                          void (*obey)(struct gguf_draft *draft, char *word))
{
    char *copy = strdup(words ? words : ""), *rest = copy, *word;

    if (!copy)
        draft->made.result = -ENOMEM;
    while (draft->made.result == 0 && (word = strsep(&rest, " ")))
        if (*word != '\0')
            obey(draft, word);
    free(copy);
}

void gguf_draft_keys(struct gguf_draft *draft, const char *words)
{
    for_each_word(draft, words, obey_key);
}

/* Return true if a value is the default "TYPE:VALUE" of a word; arrays and "@…" count as such. */
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

static void undo_key(struct gguf_draft *draft, char *word)
{
    char *end = word + strcspn(word, "<=!~^"), *text = NULL, *old = word, full[NAME_BYTES];
    const char operation = *end;
    const struct gguf_key *key;

    if (*word == '-' || is_final(operation))
        return;
    *end = '\0';
    if (operation == '<') {
        old = end + 1;
        end = old + strcspn(old, "=");
    }
    if (operation == '=' || (operation == '<' && *end == '=')) {
        *end = '\0';
        text = end + 1;
    }
    key = find_source(draft, word);
    if (!key || (old == word && !text && draft->source == draft->made.model))
        return;
    if (!text || !equals_default(&key->value, text))
        gguf_draft_set(draft, old, key->value);
    else
        old = NULL;
    if (draft->source == draft->made.model && old != word) {
        full_name(draft->from, word, full);
        gguf_remove_key(draft->made.model, full);
    }
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
    gguf_draft_set(draft, "/general.architecture",
                   (struct gguf_value){.type = GGUF_STRING, .string = {name, strlen(name)}});
}

/* ---- tensors ---- */

struct gguf_item *gguf_draft_item(const struct gguf_draft *draft, const char *name)
{
    const size_t index = gguf_find_item(&draft->made, gguf_string_of(name));

    return index < draft->made.n_items ? &draft->made.items[index] : NULL;
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
