/* Memory, limits and errors of a run; lists, dicts, equality and order, as in Python. */
#include "gguf/jinja/jinja_run.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistr.h>

#define CHUNK_BYTES 65536

struct chunk {
    struct chunk *next;
    size_t used, room;
    _Alignas(16) char bytes[];
};

/* ---- runs ---- */

void jinja_fail(struct run *r, const char *format, ...)
{
    char *text = r->error->text;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof r->error->text, format, arguments);
    va_end(arguments);
    /* The cut may have left a part of a character. */
    for (const uint8_t *bad; (bad = u8_check((uint8_t *)text, strlen(text)));)
        text[bad - (uint8_t *)text] = '\0';
    r->error->line = r->line;
    longjmp(r->failed, 1);
}

const char *jinja_format(struct run *r, const char *format, ...)
{
    char *text = jinja_alloc(r, 300);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, 300, format, arguments);
    va_end(arguments);
    return text;
}

void *jinja_alloc(struct run *r, size_t n_bytes)
{
    struct chunk *chunk = r->chunks;
    const size_t n = (n_bytes + 15) / 16 * 16;

    if (n_bytes > JINJA_MAX_MEMORY_BYTES)
        jinja_fail(r, "text or list too long: it needs more than %u MiB of memory",
                   JINJA_MAX_MEMORY_BYTES >> 20);
    if (!chunk || chunk->room - chunk->used < n) {
        const size_t room = n > CHUNK_BYTES ? n : CHUNK_BYTES;
        /* A large block must not hide the free part of the first chunk. */
        struct chunk **place = chunk && n > CHUNK_BYTES / 2 ? &chunk->next : &r->chunks;

        if (room > JINJA_MAX_MEMORY_BYTES - r->memory_bytes)
            jinja_fail(r, "texts and lists need more than %u MiB of memory",
                       JINJA_MAX_MEMORY_BYTES >> 20);
        chunk = calloc(1, sizeof *chunk + room);
        if (!chunk)
            jinja_fail(r, "out of memory");
        r->memory_bytes += room;
        chunk->room = room;
        chunk->next = *place;
        *place = chunk;
    }
    chunk->used += n;
    return chunk->bytes + chunk->used - n;
}

void jinja_free_chunks(struct chunk *chunks)
{
    while (chunks) {
        struct chunk *next = chunks->next;

        free(chunks);
        chunks = next;
    }
}

void jinja_charge(struct run *r, uint64_t n)
{
    r->steps += n;
    if (r->steps > JINJA_MAX_STEPS)
        jinja_fail(r, "more than %u steps", JINJA_MAX_STEPS);
}

void jinja_enter(struct run *r, unsigned limit)
{
    if (++r->depth > limit)
        jinja_fail(r, "nesting or recursion deeper than %u levels", limit);
}

/* ---- types ---- */

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
        [JINJA_KEYS] = "dict_keys",
        [JINJA_VALUES] = "dict_values",
        [JINJA_ITEMS] = "dict_items",
        [JINJA_DICT] = "dict",
        [JINJA_NAMESPACE] = "Namespace",
        [JINJA_GENERATOR] = "generator",
        [JINJA_LOOP] = "LoopContext",
        [JINJA_MACRO] = "Macro",
        [JINJA_FUNCTION] = "builtin_function_or_method",
    };

    return names[value.type];
}

struct value jinja_undefined(struct run *r, struct value owner, struct value name)
{
    struct undefined *undefined = jinja_alloc(r, sizeof *undefined);

    *undefined = (struct undefined){NULL, owner, name};
    return (struct value){.type = JINJA_UNDEFINED, .undefined = undefined};
}

struct value jinja_missing(struct run *r, const char *message)
{
    const struct value value = jinja_undefined(r, jinja_none, jinja_none);

    value.undefined->hint = message;
    return value;
}

void jinja_need_defined(struct run *r, struct value value)
{
    const struct undefined *undefined = value.undefined;
    const struct text *name;

    if (value.type != JINJA_UNDEFINED)
        return;
    if (undefined->hint)
        jinja_fail(r, "%s", undefined->hint);
    name = jinja_str(r, undefined->name);
    if (undefined->owner.type == JINJA_ABSENT)
        jinja_fail(r, "'%.*s' is undefined", JINJA_SHORT(name));
    if (undefined->name.type != JINJA_STRING)
        jinja_fail(r, "%s object has no element %.*s", jinja_type_name(undefined->owner),
                   JINJA_SHORT(name));
    if (undefined->owner.type == JINJA_NONE)
        jinja_fail(r, "'None' has no attribute '%.*s'", JINJA_SHORT(name));
    jinja_fail(r, "'%s object' has no attribute '%.*s'", jinja_type_name(undefined->owner),
               JINJA_SHORT(name));
}

struct text *jinja_need_text(struct run *r, struct value value)
{
    jinja_need_defined(r, value);
    if (value.type != JINJA_STRING)
        jinja_fail(r, "expected str, got %s", jinja_type_name(value));
    return value.text;
}

int64_t jinja_need_int(struct run *r, struct value value, int64_t if_absent)
{
    if (value.type == JINJA_ABSENT)
        return if_absent;
    if (!jinja_is_integer(value))
        jinja_fail(r, "'%s' object cannot be interpreted as an integer", jinja_type_name(value));
    return value.integer;
}

bool jinja_truth(struct value value)
{
    if (value.type <= JINJA_NONE)
        return false;
    if (jinja_is_number(value))
        return jinja_as_double(value) != 0;
    if (value.type == JINJA_STRING)
        return value.text->n > 0;
    if (value.type >= JINJA_LIST && value.type <= JINJA_ITEMS)
        return value.list->count > 0;
    return value.type != JINJA_DICT || value.dict->count > 0;
}

/* ---- lists ---- */

struct list *jinja_new_list(struct run *r, size_t room)
{
    struct list *list = jinja_alloc(r, sizeof *list);

    if (room > JINJA_MAX_MEMORY_BYTES / sizeof *list->items)
        jinja_fail(r, "list too long: %zu items", room);
    list->room = room;
    list->items = jinja_alloc(r, room * sizeof *list->items);
    return list;
}

void jinja_push(struct run *r, struct list *list, struct value item)
{
    if (list->count == list->room) {
        const struct list old = *list;

        *list = *jinja_new_list(r, old.room < 4 ? 4 : 2 * old.room);
        if (old.count)
            memcpy(list->items, old.items, old.count * sizeof *old.items);
        list->count = old.count;
    }
    list->items[list->count++] = item;
}

void jinja_push_all(struct run *r, struct list *list, const struct list *items)
{
    for (size_t i = 0; i < items->count; i++)
        jinja_push(r, list, items->items[i]);
}

/* ---- dicts ---- */

/* Fail for a key that Python does not hash: a list, a dict or a tuple with one of them. */
static void check_key(struct run *r, struct value key)
{
    jinja_enter(r, JINJA_MAX_DEPTH);
    for (size_t i = 0; key.type == JINJA_TUPLE && i < key.list->count; i++)
        check_key(r, key.list->items[i]);
    r->depth--;
    if (key.type != JINJA_TUPLE && (key.type > JINJA_STRING || key.type == JINJA_BIG))
        jinja_fail(r, "unhashable type: '%s'", jinja_type_name(key));
}

struct dict *jinja_new_dict(struct run *r)
{
    return jinja_alloc(r, sizeof(struct dict));
}

struct value *jinja_find(struct run *r, const struct dict *dict, struct value key)
{
    const bool is_text = key.type == JINJA_STRING;

    check_key(r, key);
    jinja_charge(r, 1 + dict->count / 4 + (is_text ? key.text->n / 64 : 0));
    for (size_t i = 0; i < dict->count; i++) {
        struct entry *entry = &dict->entries[i];

        if (is_text && entry->key.type == JINJA_STRING
                ? entry->key.text->n == key.text->n &&
                      memcmp(entry->key.text->bytes, key.text->bytes, key.text->n) == 0
                : jinja_equal(r, entry->key, key))
            return &entry->value;
    }
    return NULL;
}

struct value *jinja_get(struct run *r, const struct dict *dict, const char *key)
{
    struct text text = {.bytes = (char *)key, .n = strlen(key)};

    return jinja_find(r, dict, jinja_string(&text));
}

void jinja_set_all(struct run *r, struct dict *dict, const struct dict *entries)
{
    for (size_t i = 0; i < entries->count; i++)
        jinja_set(r, dict, entries->entries[i].key, entries->entries[i].value);
}

void jinja_set(struct run *r, struct dict *dict, struct value key, struct value value)
{
    struct value *found = jinja_find(r, dict, key);

    if (found) {
        *found = value;
        return;
    }
    if (dict->count == dict->room) {
        const struct dict old = *dict;

        dict->room = old.room ? 2 * old.room : 4;
        dict->entries = jinja_alloc(r, dict->room * sizeof *dict->entries);
        if (old.count)
            memcpy(dict->entries, old.entries, old.count * sizeof *old.entries);
    }
    dict->entries[dict->count++] = (struct entry){key, value};
}

struct value jinja_view(struct run *r, const struct dict *dict, enum jinja_type type)
{
    struct value view = {.type = type, .list = jinja_new_list(r, dict->count)};

    jinja_charge(r, dict->count);
    for (size_t i = 0; i < dict->count; i++) {
        const struct entry *entry = &dict->entries[i];
        struct value item = type == JINJA_KEYS ? entry->key : entry->value;

        if (type == JINJA_ITEMS) {
            item = (struct value){.type = JINJA_TUPLE, .list = jinja_new_list(r, 2)};
            jinja_push(r, item.list, entry->key);
            jinja_push(r, item.list, entry->value);
        }
        jinja_push(r, view.list, item);
    }
    return view;
}

/* ---- iteration ---- */

/* Apply the generator's step to an item; returns false to leave it out. */
static bool take_step(struct run *r, const struct generator *generator, struct value *item)
{
    struct value value = jinja_path(r, *item, generator->attribute, generator->if_missing);

    if (generator->builtin)
        value = jinja_call_builtin(r, generator->step == JINJA_MAP ? JINJA_FILTER : JINJA_TEST,
                                   generator->builtin, value, &generator->call);
    if (generator->step == JINJA_MAP)
        *item = value;
    return generator->step == JINJA_MAP || generator->step == JINJA_ALL ||
           jinja_truth(value) == (generator->step == JINJA_SELECT);
}

bool jinja_generate(struct run *r, struct generator *generator, struct value *item)
{
    if (!generator->items) /* jinja2 does not look into a false value */
        generator->items = jinja_truth(generator->source) ? jinja_items(r, generator->source)
                                                          : jinja_new_list(r, 0);
    while (generator->position < generator->items->count) {
        *item = generator->items->items[generator->position++];
        jinja_charge(r, 1);
        if (take_step(r, generator, item))
            return true;
    }
    return false;
}

struct list *jinja_items(struct run *r, struct value value)
{
    struct list *list;
    struct value item;

    if (value.type >= JINJA_LIST && value.type <= JINJA_ITEMS)
        return value.list;
    if (value.type == JINJA_DICT)
        return jinja_view(r, value.dict, JINJA_KEYS).list;
    list = jinja_new_list(r, 0);
    if (value.type == JINJA_STRING) {
        jinja_charge(r, value.text->n);
        for (size_t at = 0, next; at < value.text->n; at = next) {
            next = jinja_next_char(value.text, at, &(uint32_t){0});
            jinja_push(r, list, jinja_string(jinja_cut(r, value.text, at, next)));
            list->items[list->count - 1].text->is_markup = false;
        }
    } else if (value.type == JINJA_GENERATOR) {
        jinja_enter(r, JINJA_MAX_DEPTH);
        while (jinja_generate(r, value.generator, &item))
            jinja_push(r, list, item);
        r->depth--;
    } else if (value.type != JINJA_UNDEFINED) {
        jinja_fail(r, "'%s' object is not iterable", jinja_type_name(value));
    }
    return list;
}

/* ---- equality and order ---- */

/* Compare numbers exactly; returns 2 for NaN. */
static int compare_numbers(struct value a, struct value b)
{
    const double x = jinja_as_double(a), y = jinja_as_double(b);

    if (isnan(x) || isnan(y))
        return 2;
    if (x == y && fabs(x) < 0x1p63) { /* large integers may differ though their doubles do not */
        const int64_t i = a.type == JINJA_FLOAT ? (int64_t)x : a.integer;
        const int64_t j = b.type == JINJA_FLOAT ? (int64_t)y : b.integer;

        return a.type == b.type && a.type == JINJA_FLOAT ? 0 : (i > j) - (i < j);
    }
    if (jinja_is_integer(a) && jinja_is_integer(b))
        return (a.integer > b.integer) - (a.integer < b.integer);
    return (x > y) - (x < y);
}

static int compare_texts(const struct text *a, const struct text *b)
{
    const int order = memcmp(a->bytes, b->bytes, a->n < b->n ? a->n : b->n);

    return order ? (order > 0) - (order < 0) : (a->n > b->n) - (a->n < b->n);
}

bool jinja_equal(struct run *r, struct value a, struct value b)
{
    bool is_equal = true;

    jinja_charge(r, 1);
    if (jinja_is_number(a) && jinja_is_number(b))
        return compare_numbers(a, b) == 0;
    if (a.type != b.type)
        return false;
    if (a.type == JINJA_STRING || a.type == JINJA_BIG) {
        jinja_charge(r, a.text->n == b.text->n ? a.text->n / 64 : 0);
        return a.text->n == b.text->n && memcmp(a.text->bytes, b.text->bytes, a.text->n) == 0;
    }
    if (a.type <= JINJA_NONE)
        return true;
    if (a.type > JINJA_DICT)
        return a.dict == b.dict;
    jinja_enter(r, JINJA_MAX_DEPTH);
    if (a.type == JINJA_DICT) {
        is_equal = a.dict->count == b.dict->count;
        for (size_t i = 0; is_equal && i < a.dict->count; i++) {
            const struct value *other = jinja_find(r, b.dict, a.dict->entries[i].key);

            is_equal = other && jinja_equal(r, a.dict->entries[i].value, *other);
        }
    } else {
        is_equal = a.list->count == b.list->count;
        for (size_t i = 0; is_equal && i < a.list->count; i++)
            is_equal = jinja_equal(r, a.list->items[i], b.list->items[i]);
    }
    r->depth--;
    return is_equal;
}

int jinja_compare(struct run *r, const char *sign, struct value a, struct value b)
{
    size_t i = 0, n;
    int order;

    jinja_charge(r, 1);
    jinja_need_defined(r, a);
    jinja_need_defined(r, b);
    if (jinja_is_number(a) && jinja_is_number(b))
        return compare_numbers(a, b);
    if (a.type == JINJA_STRING && b.type == JINJA_STRING) {
        jinja_charge(r, a.text->n / 64);
        return compare_texts(a.text, b.text);
    }
    if (a.type != b.type || (a.type != JINJA_LIST && a.type != JINJA_TUPLE))
        jinja_fail(r, "'%s' not supported between instances of '%s' and '%s'", sign,
                   jinja_type_name(a), jinja_type_name(b));
    n = a.list->count < b.list->count ? a.list->count : b.list->count;
    jinja_enter(r, JINJA_MAX_DEPTH);
    while (i < n && jinja_equal(r, a.list->items[i], b.list->items[i]))
        i++;
    order = i < n ? jinja_compare(r, sign, a.list->items[i], b.list->items[i])
                  : (a.list->count > b.list->count) - (a.list->count < b.list->count);
    r->depth--;
    return order;
}
