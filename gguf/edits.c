#include "gguf/edits.h"

#include "gguf/edit_keys.h"
#include "gguf/edit_values.h"
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

int gguf_edits_set(struct gguf_edits *edits, const char *text, struct gguf_report *report)
{
    const char *equals = strchr(text, '=');
    const char *colon = equals ? strchr(equals, ':') : NULL;
    struct gguf_edit *edit;
    int result;

    if (!colon)
        return gguf_error(report, GGUF_RULE_EDIT, -EINVAL, GGUF_NO_PLACE,
                          "%s is not of the form KEY=TYPE:VALUE", gguf_quote(string_of(text)).text);
    result = add(edits, (struct gguf_string){text, (uint64_t)(equals - text)}, &edit, report);
    if (result < 0)
        return result;
    return gguf_edit_value_from_text(
        edit, (struct gguf_string){equals + 1, (uint64_t)(colon - equals - 1)}, colon + 1, report);
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
static int open_object(const cJSON *member, struct gguf_string *type, const cJSON **value,
                       struct gguf_report *report)
{
    const cJSON *type_member = cJSON_GetObjectItemCaseSensitive(member, "type");

    *value = cJSON_GetObjectItemCaseSensitive(member, "value");
    if (!cJSON_IsString(type_member) || !*value || cJSON_GetArraySize(member) != 2)
        return gguf_error(report, GGUF_RULE_EDIT, -EINVAL,
                          gguf_at_key(string_of(member->string), GGUF_NO_OFFSET),
                          "an object must have a \"type\" and a \"value\", and nothing else");
    *type = string_of(type_member->valuestring);
    return 0;
}

static int add_member(struct gguf_edits *edits, const cJSON *member, struct gguf_report *report)
{
    struct gguf_string type = {0};
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
    if (result == 0 && cJSON_IsObject(member))
        result = open_object(member, &type, &value, report);
    return result < 0 ? result : gguf_edit_value_from_json(edit, type, value, report);
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
        free(edits->list[i].data);
    }
    free(edits->list);
    *edits = (struct gguf_edits){0};
}

/* ---- the model ---- */

static int set(const struct gguf_edit *edit, struct gguf_model *model, struct gguf_report *report)
{
    struct gguf_value value = edit->value;
    struct gguf_key *key;
    uint8_t *data = NULL;

    if (gguf_edit_check_type(model, edit->key, &value, report) < 0)
        return -EINVAL;
    if (value.type == GGUF_STRING || value.type == GGUF_ARRAY) {
        data = gguf_model_alloc(model, edit->data_bytes);
        if (!data)
            return fail_memory(report);
        if (edit->data_bytes > 0)
            memcpy(data, edit->data, edit->data_bytes);
    }
    if (value.type == GGUF_STRING)
        value.string = (struct gguf_string){(const char *)data, edit->data_bytes};
    if (value.type == GGUF_ARRAY) {
        value.array.data = data;
        value.array.size_bytes = edit->data_bytes;
    }
    key = (struct gguf_key *)(uintptr_t)gguf_find_key(model, edit->key.data);
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
