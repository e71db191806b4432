#include "gguf/edits.h"

#include "gguf/models/key_lists.h"
#include "gguf/validate.h"

#include <cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define REFUSE(report, key, ...)                                                                   \
    gguf_error(report, GGUF_RULE_EDIT, -EINVAL, gguf_at_key(key, GGUF_NO_OFFSET), __VA_ARGS__)

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
        return REFUSE(report, key,
                      "keys that begin with split. say which files are shards of one "
                      "model and cannot be edited");
    return 0;
}

/* Add an edit without a value, which removes the key. */
static int add(struct gguf_edits *edits, struct gguf_string key, struct gguf_edit **edit,
               struct gguf_report *report)
{
    struct gguf_edit *list;

    if (check_key(key, report) < 0)
        return -EINVAL;
    list = reallocarray(edits->list, edits->count + 1, sizeof *list);
    if (list)
        edits->list = list;
    if (!list || gguf_string_copy(&key) < 0)
        return gguf_system_error(report, -ENOMEM, GGUF_NO_PLACE);
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
    if (colon)
        *type = (struct gguf_string){equals + 1, (uint64_t)(colon - equals - 1)};
    if (gguf_edit_read_type(*type, &ignored))
        return colon + 1;
    *type = (struct gguf_string){0};
    return equals + 1;
}

/* Set the value of an edit, which takes ownership. Checks it if its type is known. */
static int set_value(struct gguf_edit *edit, cJSON *value, struct gguf_report *report)
{
    struct gguf_value ignored;

    edit->value = value;
    if (!value)
        return gguf_system_error(report, -ENOMEM, GGUF_NO_PLACE);
    return edit->type.type == GGUF_N_VALUE_TYPES
               ? 0
               : gguf_edit_value_make(&ignored, NULL, edit->key, edit->type, value, edit->is_text,
                                      report);
}

int gguf_edits_set(struct gguf_edits *edits, const char *text, struct gguf_report *report)
{
    struct gguf_string type_name;
    const char *value = gguf_edit_find_value(text, &type_name);
    struct gguf_edit *edit;
    int result;

    if (!value)
        return gguf_error(report, GGUF_RULE_EDIT, -EINVAL, GGUF_NO_PLACE,
                          "%s is not of the form KEY=VALUE or, for a new key, KEY=TYPE:VALUE "
                          "(examples: general.name=Max, my.key=u32:8)",
                          gguf_quote(gguf_string_of(text)).text);
    result =
        add(edits, (struct gguf_string){text, (uint64_t)(strchr(text, '=') - text)}, &edit, report);
    if (result < 0)
        return result;
    edit->is_text = true;
    edit->is_type_given = gguf_edit_read_type(type_name, &edit->type);
    return set_value(edit, cJSON_CreateString(value), report);
}

int gguf_edits_unset(struct gguf_edits *edits, const char *key, struct gguf_report *report)
{
    struct gguf_edit *edit;

    return add(edits, gguf_string_of(key), &edit, report);
}

/* Split {"type": TYPE, "value": VALUE}. */
static int open_object(const cJSON *member, struct gguf_edit_type *type, const cJSON **value,
                       struct gguf_report *report)
{
    const cJSON *type_member = cJSON_GetObjectItemCaseSensitive(member, "type");
    const struct gguf_string key = gguf_string_of(member->string);

    *value = cJSON_GetObjectItemCaseSensitive(member, "value");
    if (!cJSON_IsString(type_member) || !*value || cJSON_GetArraySize(member) != 2)
        return REFUSE(report, key,
                      "an object must have a \"type\" and a \"value\", and nothing else");
    if (!gguf_edit_read_type(gguf_string_of(type_member->valuestring), type))
        return REFUSE(report, key, "unknown type %s; available: " GGUF_EDIT_TYPES,
                      gguf_quote(gguf_string_of(type_member->valuestring)).text);
    return 0;
}

/* Return the type that JSON implies for a new key; GGUF_N_VALUE_TYPES for numbers. */
static struct gguf_edit_type type_of_json(const cJSON *json)
{
    return (struct gguf_edit_type){cJSON_IsString(json)  ? GGUF_STRING
                                   : cJSON_IsBool(json)  ? GGUF_BOOL
                                   : cJSON_IsArray(json) ? GGUF_ARRAY
                                                         : GGUF_N_VALUE_TYPES,
                                   GGUF_N_VALUE_TYPES};
}

/* Add the steps of an option: a text, or an array of them. */
static int add_steps(struct gguf_edits *edits, const cJSON *member, struct gguf_report *report)
{
    const cJSON *value = cJSON_IsArray(member) ? member->child : member;
    int result = 0;

    for (; result == 0 && value; value = value == member ? NULL : value->next)
        result = cJSON_IsString(value)
                     ? gguf_surgery_add(&edits->surgery, member->string, value->valuestring, report)
                     : -ENOENT;
    if (result == -ENOENT)
        return REFUSE(report, gguf_string_of(member->string),
                      "it is no option with a text or an array of texts that a file of edits "
                      "may hold");
    return result;
}

static int add_member(struct gguf_edits *edits, const cJSON *member, struct gguf_report *report)
{
    const cJSON *value = member;
    struct gguf_edit *edit;
    int result;

    if (gguf_text_starts_with(member->string, "--"))
        return add_steps(edits, member, report);
    for (const cJSON *other = member->next; other; other = other->next) {
        if (strcmp(other->string, member->string) == 0)
            return REFUSE(report, gguf_string_of(member->string), "the file has it twice");
    }
    result = add(edits, gguf_string_of(member->string), &edit, report);
    if (result < 0 || cJSON_IsNull(member))
        return result;
    edit->type = type_of_json(member);
    edit->is_type_given = cJSON_IsObject(member);
    if (edit->is_type_given)
        result = open_object(member, &edit->type, &value, report);
    return result < 0 ? result : set_value(edit, cJSON_Duplicate(value, true), report);
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
        cJSON_Delete(edits->list[i].value);
    }
    free(edits->list);
    gguf_surgery_free(&edits->surgery);
    *edits = (struct gguf_edits){0};
}

/* ---- the model ---- */

/*
 * Return the part before the colon of a text like "u99:8", which was probably meant as a type, or
 * an empty string.
 */
static struct gguf_string find_unknown_type(const struct gguf_edit *edit)
{
    const char *text = edit->is_text && !edit->is_type_given ? edit->value->valuestring : "";
    const size_t length = strcspn(text, ": /");

    return (struct gguf_string){text,
                                isalpha((unsigned char)*text) && text[length] == ':' ? length : 0};
}

/* Return the type for a new key that its name or the edit's value suggests. */
static const char *suggest_type(const struct gguf_edit *edit)
{
    const char *dot = strchr(edit->key.data, '.'), *text = edit->value->valuestring;
    const double number = edit->value->valuedouble;
    char *end;

    switch (dot ? gguf_key_type(dot + 1) : GGUF_KEY_UINT32) {
    case GGUF_KEY_FLOAT32:
        return "f32";
    case GGUF_KEY_BOOL:
        return "bool";
    case GGUF_KEY_STRING:
        return "str";
    case GGUF_KEY_UINT32: /* or unknown */
        break;
    }
    if (!edit->is_text)
        return number == floor(number) ? "u32" : "f32";
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        return "bool";
    if (*text == '[')
        return "arr";
    strtod(text, &end);
    if (end == text || *end != '\0')
        return "str";
    return text[strspn(text, "+-0123456789")] == '\0' ? "u32" : "f32";
}

/* Refuse a value without a type for a key that the model does not have. */
static int refuse_untyped(const struct gguf_edit *edit, struct gguf_report *report)
{
    const struct gguf_string unknown = find_unknown_type(edit);
    const bool has_unknown = unknown.length_bytes > 0;
    const char *type = has_unknown ? "u32" : suggest_type(edit);

    return REFUSE(report, edit->key,
                  "the model has no such key, and %s%s, for instance %s%s%s%s "
                  "(types: " GGUF_EDIT_TYPES ")",
                  has_unknown ? gguf_quote(unknown).text : "a new one",
                  has_unknown ? " is not a type for a new one" : " needs a type",
                  edit->is_text ? "KEY=" : "{\"type\": \"", type,
                  edit->is_text ? ":VALUE" : "\", \"value\": VALUE}",
                  strcmp(type, "u32") == 0 ? ", or f32 if it can have a fraction" : "");
}

/* Make the value of an edit. `key` is the model's, or NULL. */
static int make_value(const struct gguf_edit *edit, struct gguf_model *model,
                      const struct gguf_key *key, struct gguf_value *value,
                      struct gguf_report *report)
{
    const struct gguf_string unknown = find_unknown_type(edit);
    struct gguf_edit_type old = edit->type, new = edit->type;
    bool is_known = edit->is_type_given;
    int result;

    if (!key && edit->type.type == GGUF_N_VALUE_TYPES)
        return refuse_untyped(edit, report);
    if (key)
        old = gguf_edit_type_of(&key->value);
    if (key && unknown.length_bytes > 0 && old.type != GGUF_STRING)
        return REFUSE(report, edit->key,
                      "%s is not a type; leave it out, the key is %s (types: " GGUF_EDIT_TYPES ")",
                      gguf_quote(unknown).text, gguf_edit_type_name(old).text);
    /* "arr" leaves the type of the elements to an array that the model has. */
    if (new.type == GGUF_ARRAY && old.type == GGUF_ARRAY &&new.element == GGUF_N_VALUE_TYPES)
        is_known = false;
    if (key && !is_known)
        new = old;
    result = gguf_edit_value_make(value, model, edit->key, new, edit->value, edit->is_text, report);
    if (result < 0 || !key || !is_known)
        return result;
    new = gguf_edit_type_of(value);
    if (old.type == new.type && old.element == new.element)
        return 0;
    return REFUSE(report, edit->key,
                  "its type is %s, not %s; leave the type out, or remove the key first to give "
                  "it another type",
                  gguf_edit_type_name(old).text, gguf_edit_type_name(new).text);
}

static int set(const struct gguf_edit *edit, struct gguf_model *model, struct gguf_report *report)
{
    const struct gguf_key *old = gguf_find_key(model, edit->key.data);
    struct gguf_value value;
    struct gguf_key *key;
    const int result = make_value(edit, model, old, &value, report);

    if (result < 0)
        return result;
    if (!old && model->n_keys == GGUF_MAX_KEYS)
        return gguf_error(report, GGUF_RULE_EDIT, -E2BIG, gguf_at_key(edit->key, GGUF_NO_OFFSET),
                          "cannot be added, the model has %d keys, which is the limit",
                          GGUF_MAX_KEYS);
    key = gguf_set_key(model, edit->key.data, value);
    if (!key)
        return gguf_system_error(report, -ENOMEM, GGUF_NO_PLACE);
    key->file_offset = GGUF_NO_OFFSET;
    return 0;
}

int gguf_edits_apply(const struct gguf_edits *edits, struct gguf_model **edited,
                     struct gguf_report *report)
{
    int result = gguf_surgery_apply(&edits->surgery, edited, report);
    struct gguf_model *model = *edited;

    if (edits->count == 0 || result < 0)
        return result;
    model->is_current = false;
    for (size_t i = 0; result == 0 && i < edits->count; i++) {
        const struct gguf_edit *edit = &edits->list[i];

        if (edit->value)
            result = set(edit, model, report);
        else if (gguf_remove_key(model, edit->key.data) < 0)
            result = REFUSE(report, edit->key, "cannot be removed, there is no such key");
    }
    if (result < 0)
        return result;
    model->alignment_bytes = GGUF_DEFAULT_ALIGNMENT;
    return gguf_validate_alignment(model, report);
}
