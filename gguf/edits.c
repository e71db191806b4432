#include "gguf/edits.h"

#include "gguf/validate.h"

#include <cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static struct gguf_string string_of(const char *text)
{
    return (struct gguf_string){text, strlen(text)};
}

static int fail_memory(struct gguf_report *report)
{
    return gguf_system_error(report, -ENOMEM, GGUF_NO_PLACE);
}

/* ---- the list ---- */

static int check_key(struct gguf_string key, struct gguf_report *report)
{
    if (key.length_bytes == 0)
        return gguf_error(report, GGUF_RULE_EDIT, -EINVAL, GGUF_NO_PLACE, "an edit has no key");
    if (key.length_bytes > GGUF_MAX_KEY_BYTES)
        return gguf_error(report, GGUF_RULE_NAME_LENGTH, -EINVAL, gguf_at_key(key, GGUF_NO_OFFSET),
                          "its name has %" PRIu64 " bytes, the limit is %d", key.length_bytes,
                          GGUF_MAX_KEY_BYTES);
    if (gguf_string_starts_with(key, "split."))
        return gguf_error(report, GGUF_RULE_EDIT, -EINVAL, gguf_at_key(key, GGUF_NO_OFFSET),
                          "keys that begin with split. say which files are shards of one "
                          "model and cannot be edited");
    return 0;
}

/* Add an edit without its value. */
static int add(struct gguf_edits *edits, struct gguf_string key, struct gguf_edit **edit,
               struct gguf_report *report)
{
    struct gguf_edit *list;

    if (check_key(key, report) < 0)
        return -EINVAL;
    list = reallocarray(edits->list, edits->count + 1, sizeof *list);
    if (list)
        edits->list = list;
    if (!list || gguf_string_copy(&key) < 0) {
        fail_memory(report);
        return -ENOMEM;
    }
    *edit = &list[edits->count++];
    **edit = (struct gguf_edit){.key = key};
    return 0;
}

const char *gguf_edit_find_value(const char *text, struct gguf_string *type)
{
    const char *equals = strchr(text, '='), *colon = equals ? strchr(equals, ':') : NULL;
    struct gguf_edit_type ignored;

    *type = (struct gguf_string){0};
    if (!equals)
        return NULL;
    if (colon) {
        const struct gguf_string head = {equals + 1, (uint64_t)(colon - equals - 1)};

        if (gguf_edit_read_type(head, &ignored)) {
            *type = head;
            return colon + 1;
        }
    }
    return equals + 1;
}

/* Return true if the values decide the type of an array's elements. */
static bool is_implied(struct gguf_edit_type type)
{
    return type.type == GGUF_ARRAY && type.element == GGUF_N_VALUE_TYPES;
}

int gguf_edits_set(struct gguf_edits *edits, const char *text, struct gguf_report *report)
{
    struct gguf_string type_name;
    const char *value = gguf_edit_find_value(text, &type_name);
    struct gguf_edit_type type;
    struct gguf_edit *edit;
    int result;

    if (!value)
        return gguf_error(report, GGUF_RULE_EDIT, -EINVAL, GGUF_NO_PLACE,
                          "%s is not of the form KEY=VALUE or, for a new key, KEY=TYPE:VALUE "
                          "(examples: general.name=Max, my.key=u32:8)",
                          gguf_quote(string_of(text)).text);
    result =
        add(edits, (struct gguf_string){text, (uint64_t)(strchr(text, '=') - text)}, &edit, report);
    if (result < 0)
        return result;
    if (!type_name.data) {
        edit->text = strdup(value);
        return edit->text ? 0 : fail_memory(report);
    }
    gguf_edit_read_type(type_name, &type);
    edit->has_value = true;
    result = gguf_edit_value_from_text(&edit->value, edit->key, type, value, report);
    if (result == 0 && is_implied(type)) {
        edit->text = strdup(value);
        result = edit->text ? 0 : fail_memory(report);
    }
    return result;
}

int gguf_edits_unset(struct gguf_edits *edits, const char *key, struct gguf_report *report)
{
    struct gguf_edit *edit;
    const int result = add(edits, string_of(key), &edit, report);

    if (result == 0)
        edit->is_unset = true;
    return result;
}

/* Split {"type": TYPE, "value": VALUE}. */
static int open_object(const cJSON *member, struct gguf_edit_type *type, const cJSON **value,
                       struct gguf_report *report)
{
    const cJSON *type_member = cJSON_GetObjectItemCaseSensitive(member, "type");
    const struct gguf_place place = gguf_at_key(string_of(member->string), GGUF_NO_OFFSET);

    *value = cJSON_GetObjectItemCaseSensitive(member, "value");
    if (!cJSON_IsString(type_member) || !*value || cJSON_GetArraySize(member) != 2)
        return gguf_error(report, GGUF_RULE_EDIT, -EINVAL, place,
                          "an object must have a \"type\" and a \"value\", and nothing else");
    if (!gguf_edit_read_type(string_of(type_member->valuestring), type))
        return gguf_error(report, GGUF_RULE_EDIT, -EINVAL, place,
                          "unknown type %s; available: " GGUF_EDIT_TYPES,
                          gguf_quote(string_of(type_member->valuestring)).text);
    return 0;
}

/* Return the type that JSON implies for a new key; GGUF_N_VALUE_TYPES for numbers. */
static struct gguf_edit_type type_of_json(const cJSON *json)
{
    struct gguf_edit_type type = {GGUF_N_VALUE_TYPES, GGUF_N_VALUE_TYPES};

    if (cJSON_IsString(json))
        type.type = GGUF_STRING;
    else if (cJSON_IsBool(json))
        type.type = GGUF_BOOL;
    else if (cJSON_IsArray(json))
        type.type = GGUF_ARRAY;
    return type;
}

static int add_member(struct gguf_edits *edits, const cJSON *member, struct gguf_report *report)
{
    struct gguf_edit_type type = type_of_json(member);
    const cJSON *value = member;
    struct gguf_edit *edit;
    int result;

    for (const cJSON *other = member->next; other; other = other->next) {
        if (strcmp(other->string, member->string) == 0)
            return gguf_error(report, GGUF_RULE_EDIT, -EINVAL,
                              gguf_at_key(string_of(member->string), GGUF_NO_OFFSET),
                              "the file has it twice");
    }
    if (cJSON_IsNull(member))
        return gguf_edits_unset(edits, member->string, report);
    result = add(edits, string_of(member->string), &edit, report);
    if (result < 0)
        return result;
    if (cJSON_IsObject(member))
        result = open_object(member, &type, &value, report);
    edit->has_value = result == 0 && type.type < GGUF_N_VALUE_TYPES;
    if (edit->has_value)
        result = gguf_edit_value_from_json(&edit->value, edit->key, type, value, report);
    if (result == 0 && (value == member || is_implied(type))) {
        edit->json = cJSON_Duplicate(value, true);
        result = edit->json ? 0 : fail_memory(report);
    }
    return result;
}

int gguf_edits_add_json(struct gguf_edits *edits, const char *json, size_t length_bytes,
                        const char *place, struct gguf_report *report)
{
    const cJSON *member;
    cJSON *object;
    int result = gguf_edit_parse_json(json, length_bytes, place, &object, report);

    if (result < 0)
        return result;
    if (!cJSON_IsObject(object))
        result = gguf_error(report, GGUF_RULE_EDIT, -EINVAL, gguf_at_part(place, GGUF_NO_OFFSET),
                            "the JSON is not an object");
    for (member = object->child; result == 0 && member; member = member->next)
        result = add_member(edits, member, report);
    cJSON_Delete(object);
    return result;
}

void gguf_edits_free(struct gguf_edits *edits)
{
    for (size_t i = 0; i < edits->count; i++) {
        free((void *)(uintptr_t)edits->list[i].key.data);
        gguf_buffer_free(&edits->list[i].value.data);
        free(edits->list[i].text);
        cJSON_Delete(edits->list[i].json);
    }
    free(edits->list);
    *edits = (struct gguf_edits){0};
}

/* ---- the model ---- */

/* Return true if a key that the model has gives the edit its type. */
static bool takes_type(const struct gguf_edit *edit)
{
    return edit->text || edit->json;
}

/* Make the value of an edit in the type of the key. */
static int make_in_type(const struct gguf_edit *edit, struct gguf_edit_type type,
                        struct gguf_edit_value *value, struct gguf_report *report)
{
    if (edit->json)
        return gguf_edit_value_from_json(value, edit->key, type, edit->json, report);
    return gguf_edit_value_from_text(value, edit->key, type, edit->text, report);
}

/* Return the part of a text like "u99:8" that is where a type would be; empty without a colon. */
static struct gguf_string find_unknown_type(const char *text)
{
    const size_t length = text ? strcspn(text, ": /") : 0;

    return (struct gguf_string){text, length > 0 && text[length] == ':' ? length : 0};
}

static int check_type(const struct gguf_edit *edit, const struct gguf_key *key,
                      struct gguf_report *report)
{
    const struct gguf_place place = gguf_at_key(edit->key, GGUF_NO_OFFSET);
    const struct gguf_string unknown = find_unknown_type(edit->text);
    struct gguf_edit_type old, new;

    if (!key && !edit->has_value)
        return gguf_error(
            report, GGUF_RULE_EDIT, -EINVAL, place,
            "the model has no such key, and %s%s, for instance %s (types: " GGUF_EDIT_TYPES ")",
            unknown.length_bytes > 0 ? gguf_quote(unknown).text : "a new one",
            unknown.length_bytes > 0 ? " is not a type for a new one" : " needs a type",
            edit->json ? "{\"type\": \"u32\", \"value\": 8}" : "KEY=u32:VALUE");
    if (!key || takes_type(edit))
        return 0;
    old = gguf_edit_type_of(&key->value);
    new = gguf_edit_type_of(&edit->value.value);
    if (old.type == new.type && old.element == new.element)
        return 0;
    return gguf_error(report, GGUF_RULE_EDIT, -EINVAL, place,
                      "its type is %s, not %s; leave the type out, or remove the key first to give "
                      "it another type",
                      gguf_edit_type_name(old).text, gguf_edit_type_name(new).text);
}

/* Copy the value into memory of the model. */
static int copy_value(const struct gguf_edit_value *from, struct gguf_model *model,
                      struct gguf_value *value)
{
    const size_t n_bytes = from->data.length;
    uint8_t *data;

    *value = from->value;
    if (value->type != GGUF_STRING && value->type != GGUF_ARRAY)
        return 0;
    data = gguf_model_alloc(model, n_bytes);
    if (!data)
        return -ENOMEM;
    if (n_bytes > 0)
        memcpy(data, from->data.bytes, n_bytes);
    if (value->type == GGUF_STRING) {
        value->string = (struct gguf_string){(const char *)data, n_bytes};
    } else {
        value->array.data = data;
        value->array.size_bytes = n_bytes;
    }
    return 0;
}

static int set(const struct gguf_edit *edit, struct gguf_model *model, struct gguf_report *report)
{
    struct gguf_key *key = (struct gguf_key *)(uintptr_t)gguf_find_key(model, edit->key.data);
    struct gguf_edit_value made = {0};
    struct gguf_value value = {0};
    int result = check_type(edit, key, report);

    if (result == 0 && key && takes_type(edit))
        result = make_in_type(edit, gguf_edit_type_of(&key->value), &made, report);
    if (result == 0 &&
        copy_value(key && takes_type(edit) ? &made : &edit->value, model, &value) < 0)
        result = fail_memory(report);
    gguf_buffer_free(&made.data);
    if (result < 0)
        return result;
    if (!key && model->n_keys == GGUF_MAX_KEYS)
        return gguf_error(report, GGUF_RULE_EDIT, -E2BIG, gguf_at_key(edit->key, GGUF_NO_OFFSET),
                          "cannot be added, the model has %d keys, which is the limit",
                          GGUF_MAX_KEYS);
    if (!key && gguf_add_key(model, edit->key.data, value) < 0)
        return fail_memory(report);
    if (!key)
        key = &model->keys[model->n_keys - 1];
    key->value = value;
    key->file_offset = GGUF_NO_OFFSET;
    return 0;
}

int gguf_edits_apply(const struct gguf_edits *edits, struct gguf_model *model,
                     struct gguf_report *report)
{
    int result = 0;

    if (edits->count == 0)
        return 0;
    model->is_current = false;
    for (size_t i = 0; result == 0 && i < edits->count; i++) {
        const struct gguf_edit *edit = &edits->list[i];

        if (!edit->is_unset)
            result = set(edit, model, report);
        else if (gguf_remove_key(model, edit->key.data) < 0)
            result =
                gguf_error(report, GGUF_RULE_EDIT, -EINVAL, gguf_at_key(edit->key, GGUF_NO_OFFSET),
                           "cannot be removed, there is no such key");
    }
    if (result < 0)
        return result;
    model->alignment_bytes = GGUF_DEFAULT_ALIGNMENT;
    return gguf_validate_alignment(model, report);
}
