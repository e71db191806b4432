/* Values: lists, dicts, equality and order, as in Python. */
#include "gguf/jinja/jinja_run.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Dicts with more entries have a hash table. */
#define MAX_LINEAR 8

const char *jinja_type_name(struct value value)
{
    static const char *const names[] = {
        [JINJA_UNDEFINED] = "Undefined",
        [JINJA_NONE] = "NoneType",
        [JINJA_BOOL] = "bool",
        [JINJA_INT] = "int",
        [JINJA_FLOAT] = "float",
        [JINJA_STRING] = "str",
        [JINJA_BIG] = "int",
        [JINJA_LIST] = "list",
        [JINJA_TUPLE] = "tuple",
        [JINJA_RANGE] = "range",
        [JINJA_DICT] = "dict",
        [JINJA_NAMESPACE] = "Namespace",
        [JINJA_GENERATOR] = "generator",
        [JINJA_LOOP] = "LoopContext",
        [JINJA_MACRO] = "Macro",
        [JINJA_FUNCTION] = "builtin_function_or_method",
    };

    return value.type == JINJA_VIEW ? value.list->kind : names[value.type];
}

/* ---- undefined ---- */

struct value jinja_undefined(struct run *run, struct value owner, struct value name)
{
    struct undefined *undefined = jinja_alloc(run, sizeof *undefined);

    *undefined = (struct undefined){NULL, owner, name};
    return (struct value){.type = JINJA_UNDEFINED, .undefined = undefined};
}

struct value jinja_undefined_because(struct run *run, const char *format, ...)
{
    struct value value = jinja_undefined(run, jinja_none(), jinja_none());
    char hint[300];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(hint, sizeof hint, format, arguments);
    va_end(arguments);
    value.undefined->hint = memcpy(jinja_alloc(run, sizeof hint), hint, sizeof hint);
    return value;
}

void jinja_fail_undefined(struct run *run, struct value value)
{
    const struct undefined *undefined = value.undefined;
    const struct text *name;

    if (undefined->hint)
        jinja_fail(run, "%s", undefined->hint);
    name = jinja_str(run, undefined->name);
    if (undefined->owner.type == JINJA_ABSENT)
        jinja_fail(run, "'%.*s' is undefined", JINJA_SHORT(name));
    if (undefined->name.type != JINJA_STRING)
        jinja_fail(run, "%s object has no element %.*s", jinja_type_name(undefined->owner),
                   JINJA_SHORT(name));
    jinja_fail(run,
               undefined->owner.type == JINJA_NONE ? "'%s' has no attribute '%.*s'"
                                                   : "'%s object' has no attribute '%.*s'",
               undefined->owner.type == JINJA_NONE ? "None" : jinja_type_name(undefined->owner),
               JINJA_SHORT(name));
}

bool jinja_truth(struct value value)
{
    switch (value.type) {
    case JINJA_ABSENT:
    case JINJA_UNDEFINED:
    case JINJA_NONE:
        return false;
    case JINJA_BOOL:
    case JINJA_INT:
        return value.integer != 0;
    case JINJA_FLOAT:
        return value.number != 0;
    case JINJA_STRING:
        return value.text->n_bytes > 0;
    case JINJA_LIST:
    case JINJA_TUPLE:
    case JINJA_RANGE:
    case JINJA_VIEW:
        return value.list->count > 0;
    case JINJA_DICT:
        return value.dict->count > 0;
    default:
        return true;
    }
}

/* ---- lists ---- */

struct list *jinja_list_make(struct run *run, size_t room)
{
    struct list *list = jinja_alloc(run, sizeof *list);

    if (room > JINJA_MAX_MEMORY_BYTES / sizeof *list->items)
        jinja_fail(run, "list too long: %zu items", room);
    list->room = room;
    list->items = jinja_alloc(run, room * sizeof *list->items);
    return list;
}

void jinja_list_add(struct run *run, struct list *list, struct value item)
{
    if (list->count == list->room) {
        const struct list old = *list;

        *list = *jinja_list_make(run, old.room < 4 ? 4 : 2 * old.room);
        memcpy(list->items, old.items, old.count * sizeof *old.items);
        list->count = old.count;
        list->kind = old.kind;
    }
    list->items[list->count++] = item;
}

/* ---- dicts ---- */

static uint64_t hash_of(struct run *run, struct value key)
{
    uint64_t hash = 0x9e3779b97f4a7c15u;

    if (key.type == JINJA_STRING)
        return jinja_text_hash(key.text);
    if (jinja_is_number(key)) { /* 1, 1.0 and true are the same key */
        const double number = jinja_as_double(key);

        memcpy(&hash, &number, sizeof hash);
        return (number == 0 ? 1 : hash) * 0x9e3779b97f4a7c15u >> 8;
    }
    if (key.type == JINJA_TUPLE) {
        jinja_enter(run, JINJA_MAX_DEPTH);
        for (size_t i = 0; i < key.list->count; i++)
            hash = hash * 31 + hash_of(run, key.list->items[i]);
        jinja_leave(run);
    } else if (key.type != JINJA_NONE && key.type != JINJA_UNDEFINED) {
        jinja_fail(run, "unhashable type: '%s'", jinja_type_name(key));
    }
    return hash;
}

static struct entry *find_entry(struct run *run, const struct dict *dict, struct value key,
                                uint64_t hash)
{
    for (size_t i = dict->slots ? hash % dict->n_slots : 0;; i++) {
        size_t at = i;

        if (dict->slots) {
            at = dict->slots[i % dict->n_slots];
            if (at-- == 0)
                return NULL;
        } else if (at == dict->count) {
            return NULL;
        }
        run->steps++;
        if (dict->entries[at].hash == hash && jinja_equal(run, dict->entries[at].key, key))
            return &dict->entries[at];
    }
}

struct dict *jinja_dict_make(struct run *run)
{
    return jinja_alloc(run, sizeof(struct dict));
}

struct value *jinja_dict_find(struct run *run, const struct dict *dict, struct value key)
{
    struct entry *entry = find_entry(run, dict, key, hash_of(run, key));

    return entry ? &entry->value : NULL;
}

struct value *jinja_dict_get(struct run *run, const struct dict *dict, const char *key)
{
    struct text text = {.bytes = key, .n_bytes = strlen(key)};

    return jinja_dict_find(run, dict, jinja_string(&text));
}

static void index_entries(struct run *run, struct dict *dict)
{
    dict->n_slots = 2 * dict->room + 1;
    dict->slots = jinja_alloc(run, dict->n_slots * sizeof *dict->slots);
    for (size_t i = 0; i < dict->count; i++) {
        size_t slot = dict->entries[i].hash % dict->n_slots;

        for (; dict->slots[slot]; slot = (slot + 1) % dict->n_slots)
            jinja_charge(run, 1);
        dict->slots[slot] = (uint32_t)i + 1;
    }
}

void jinja_dict_set(struct run *run, struct dict *dict, struct value key, struct value value)
{
    const uint64_t hash = hash_of(run, key);
    struct entry *entry = find_entry(run, dict, key, hash);
    size_t slot;

    if (entry) {
        entry->value = value;
        return;
    }
    if (dict->count == dict->room) {
        const struct dict old = *dict;

        dict->room = old.room ? 2 * old.room : 4;
        dict->entries = jinja_alloc(run, dict->room * sizeof *dict->entries);
        if (old.count)
            memcpy(dict->entries, old.entries, old.count * sizeof *old.entries);
        if (dict->room > MAX_LINEAR)
            index_entries(run, dict);
    }
    dict->entries[dict->count++] = (struct entry){key, value, hash};
    if (dict->slots) {
        for (slot = hash % dict->n_slots; dict->slots[slot]; slot = (slot + 1) % dict->n_slots)
            jinja_charge(run, 1);
        dict->slots[slot] = (uint32_t)dict->count;
    }
}

struct value jinja_dict_view(struct run *run, const struct dict *dict, const char *kind)
{
    struct value view = {.type = JINJA_VIEW, .list = jinja_list_make(run, dict->count)};

    view.list->kind = kind;
    jinja_charge(run, dict->count);
    for (size_t i = 0; i < dict->count; i++) {
        const struct entry *entry = &dict->entries[i];

        if (strcmp(kind, "dict_items") == 0) {
            struct list *pair = jinja_list_make(run, 2);

            jinja_list_add(run, pair, entry->key);
            jinja_list_add(run, pair, entry->value);
            jinja_list_add(run, view.list, (struct value){.type = JINJA_TUPLE, .list = pair});
        } else {
            jinja_list_add(run, view.list,
                           strcmp(kind, "dict_keys") == 0 ? entry->key : entry->value);
        }
    }
    return view;
}

/* ---- equality and order ---- */

/* Compare numbers exactly; returns 2 for NaN. */
static int compare_numbers(struct value a, struct value b)
{
    double x, y;

    if (jinja_is_integer(a) && jinja_is_integer(b))
        return (a.integer > b.integer) - (a.integer < b.integer);
    x = jinja_as_double(a);
    y = jinja_as_double(b);
    if (isnan(x) || isnan(y))
        return 2;
    if (x == y && fabs(x) >= 0x1p53 && fabs(x) < 0x1p63 && a.type != b.type) {
        const int64_t i = a.type == JINJA_FLOAT ? (int64_t)x : a.integer;
        const int64_t j = b.type == JINJA_FLOAT ? (int64_t)y : b.integer;

        return (i > j) - (i < j);
    }
    return (x > y) - (x < y);
}

bool jinja_equal(struct run *run, struct value a, struct value b)
{
    bool is_equal = true;

    jinja_charge(run, 1);
    if (jinja_is_number(a) && jinja_is_number(b))
        return compare_numbers(a, b) == 0;
    if (a.type != b.type)
        return false;
    if (a.type == JINJA_STRING || a.type == JINJA_BIG) {
        jinja_charge(run, a.text->n_bytes == b.text->n_bytes ? a.text->n_bytes / 64 : 0);
        return jinja_text_equal(a.text, b.text);
    }
    if (a.type == JINJA_NONE || a.type == JINJA_UNDEFINED)
        return true;
    if (a.type != JINJA_DICT && !jinja_is_sequence(a) && a.type != JINJA_VIEW)
        return a.dict == b.dict;
    jinja_enter(run, JINJA_MAX_DEPTH);
    if (a.type == JINJA_DICT) {
        is_equal = a.dict->count == b.dict->count;
        for (size_t i = 0; is_equal && i < a.dict->count; i++) {
            const struct value *other = jinja_dict_find(run, b.dict, a.dict->entries[i].key);

            is_equal = other && jinja_equal(run, a.dict->entries[i].value, *other);
        }
    } else {
        is_equal = a.list->count == b.list->count;
        for (size_t i = 0; is_equal && i < a.list->count; i++)
            is_equal = jinja_equal(run, a.list->items[i], b.list->items[i]);
    }
    jinja_leave(run);
    return is_equal;
}

int jinja_compare(struct run *run, const char *sign, struct value a, struct value b)
{
    int order = 0;

    jinja_charge(run, 1);
    if (a.type == JINJA_UNDEFINED || b.type == JINJA_UNDEFINED)
        jinja_fail_undefined(run, a.type == JINJA_UNDEFINED ? a : b);
    if (jinja_is_number(a) && jinja_is_number(b))
        return compare_numbers(a, b);
    if (a.type == JINJA_STRING && b.type == JINJA_STRING)
        return jinja_text_compare(a.text, b.text);
    if (a.type != b.type || (a.type != JINJA_LIST && a.type != JINJA_TUPLE))
        jinja_fail(run, "'%s' not supported between instances of '%s' and '%s'", sign,
                   jinja_type_name(a), jinja_type_name(b));
    jinja_enter(run, JINJA_MAX_DEPTH);
    for (size_t i = 0; order == 0; i++) {
        if (i == a.list->count || i == b.list->count) {
            order = (a.list->count > b.list->count) - (a.list->count < b.list->count);
            break;
        }
        if (!jinja_equal(run, a.list->items[i], b.list->items[i]))
            order = jinja_compare(run, sign, a.list->items[i], b.list->items[i]);
    }
    jinja_leave(run);
    return order;
}
