/* Filters and methods of lists, dicts and other iterables. */
#include "gguf/jinja/jinja_run.h"

#include <string.h>

/* Return the attribute of an item; as lower case if it is a string and the case is ignored. */
static struct value key_of(struct run *r, struct value item, struct value attribute,
                           bool is_case_sensitive)
{
    const struct value key = jinja_path(r, item, attribute, jinja_absent);

    return key.type == JINJA_STRING && !is_case_sensitive
               ? jinja_string(jinja_change_case(r, key.text, JINJA_LOWER))
               : key;
}

static struct value length(struct run *r, const struct value *a)
{
    if (a[0].type == JINJA_STRING)
        return jinja_int((int64_t)jinja_chars(r, a[0].text));
    if (a[0].type != JINJA_UNDEFINED && (a[0].type < JINJA_LIST || a[0].type > JINJA_DICT))
        jinja_fail(r, "object of type '%s' has no len()", jinja_type_name(a[0]));
    return jinja_int((int64_t)jinja_items(r, a[0])->count);
}

static struct value first(struct run *r, const struct value *a)
{
    struct generator all = {.source = a[0]}, *items = &all;
    struct value item;

    if (a[0].type == JINJA_GENERATOR)
        items = a[0].generator;
    else
        all.items = jinja_items(r, a[0]);
    return jinja_generate(r, items, &item) ? item
                                           : jinja_missing(r, "No first item, sequence was empty.");
}

static struct value last(struct run *r, const struct value *a)
{
    const struct list *items = a[0].type == JINJA_GENERATOR ? NULL : jinja_items(r, a[0]);

    if (!items)
        jinja_fail(r, "'generator' object is not reversible");
    return items->count ? items->items[items->count - 1]
                        : jinja_missing(r, "No last item, sequence was empty.");
}

static struct value to_list(struct run *r, const struct value *a)
{
    return jinja_list(jinja_items(r, a[0]));
}

static struct value join(struct run *r, const struct value *a)
{
    const struct list *items = jinja_items(r, a[0]);
    struct text *result = jinja_text(r, "", 0);

    for (size_t i = 0; i < items->count; i++) {
        if (i > 0 && a[1].type != JINJA_ABSENT)
            jinja_add_text(r, result, a[1].text);
        jinja_add_text(r, result, jinja_str(r, jinja_path(r, items->items[i], a[2], jinja_absent)));
    }
    return jinja_string(result);
}

/* Return a generator of the items of a source. */
static struct value generate_from(struct run *r, struct value source)
{
    struct value result = {.type = JINJA_GENERATOR,
                           .generator = jinja_alloc(r, sizeof *result.generator)};

    result.generator->source = source;
    return result;
}

static struct value dict_items(struct run *r, const struct value *a)
{
    if (a[0].type != JINJA_DICT && a[0].type != JINJA_UNDEFINED)
        jinja_fail(r, "Can only get item pairs from a mapping.");
    return generate_from(r, a[0].type == JINJA_DICT ? jinja_view(r, a[0].dict, JINJA_ITEMS) : a[0]);
}

/* ---- order ---- */

/* Merge sort, which is stable. Each item is a pair of its key and the item. */
static void merge_sort(struct run *r, struct value *items, struct value *spare, size_t n,
                       bool is_reverse)
{
    const size_t half = n / 2;
    size_t i = 0, j = half;

    if (n < 2)
        return;
    merge_sort(r, items, spare, half, is_reverse);
    merge_sort(r, items + half, spare, n - half, is_reverse);
    for (size_t k = 0; k < n; k++) {
        bool takes_right = i == half;

        if (i < half && j < n) {
            const struct value left = items[i].list->items[0], right = items[j].list->items[0];

            takes_right = (is_reverse ? jinja_compare(r, "<", left, right)
                                      : jinja_compare(r, "<", right, left)) == -1;
        }
        spare[k] = items[takes_right ? j++ : i++];
    }
    memcpy(items, spare, n * sizeof *items);
}

struct list *jinja_sorted(struct run *r, const struct list *items, struct value attribute,
                          bool is_case_sensitive, bool is_reverse)
{
    struct list *keyed = jinja_new_list(r, items->count), *result = jinja_new_list(r, items->count);

    if (attribute.type == JINJA_STRING && memchr(attribute.text->bytes, ',', attribute.text->n))
        jinja_fail(r, "sort by several attributes" JINJA_NOT_IMPLEMENTED);
    for (size_t i = 0; i < items->count; i++) {
        struct list *pair = jinja_new_list(r, 2);

        jinja_push(r, pair, key_of(r, items->items[i], attribute, is_case_sensitive));
        jinja_push(r, pair, items->items[i]);
        jinja_push(r, keyed, jinja_list(pair));
    }
    merge_sort(r, keyed->items, result->items, keyed->count, is_reverse);
    for (size_t i = 0; i < keyed->count; i++)
        jinja_push(r, result, keyed->items[i].list->items[1]);
    return result;
}

static struct value sort(struct run *r, const struct value *a)
{
    return jinja_list(
        jinja_sorted(r, jinja_items(r, a[0]), a[3], jinja_truth(a[2]), jinja_truth(a[1])));
}

static struct value dictsort(struct run *r, const struct value *a)
{
    if (a[0].type != JINJA_DICT)
        jinja_fail(r, "dictsort needs a dict, not %s", jinja_type_name(a[0]));
    return jinja_list(jinja_sorted(r, jinja_view(r, a[0].dict, JINJA_ITEMS).list, jinja_int(0),
                                   jinja_truth(a[1]), false));
}

static struct value extreme(struct run *r, const struct value *a)
{
    const struct list *items = jinja_items(r, a[0]);
    struct value best, best_key = jinja_absent;

    for (size_t i = 0; i < items->count; i++) {
        const struct value key = key_of(r, items->items[i], a[2], jinja_truth(a[1]));

        if (i == 0 || jinja_compare_by(r, (unsigned)a[JINJA_VARIANT].integer, key, best_key)) {
            best = items->items[i];
            best_key = key;
        }
    }
    return items->count ? best : jinja_missing(r, "No aggregated item, sequence was empty.");
}

/* ---- generators ---- */

/* Make a generator whose filter or test is argument `at`, with the arguments that follow. */
static struct value make_generator(struct run *r, const struct value *a, size_t at, unsigned kind)
{
    const struct value result = generate_from(r, a[0]);
    const struct list *given = a[1].list;
    struct generator *generator = result.generator;

    generator->call.named = *a[2].dict;
    for (size_t i = at + 1; i < given->count; i++)
        jinja_push(r, &generator->call.items, given->items[i]);
    if (at < given->count)
        generator->builtin = jinja_need_builtin(r, kind, jinja_need_text(r, given->items[at]));
    return result;
}

static struct value map(struct run *r, const struct value *a)
{
    const struct value *attribute = jinja_get(r, a[2].dict, "attribute"),
                       *missing = jinja_get(r, a[2].dict, "default");
    const struct value result = make_generator(r, a, 0, JINJA_FILTER);

    result.generator->step = JINJA_MAP;
    if (result.generator->builtin)
        return result;
    if (attribute && a[2].dict->count == 1u + (missing != NULL)) {
        result.generator->attribute = *attribute;
        result.generator->if_missing = missing ? *missing : jinja_absent;
        return result;
    }
    jinja_fail(r, "map requires a filter argument");
}

enum { WITH_ATTRIBUTE = 16 };

static struct value select_items(struct run *r, const struct value *a)
{
    const int variant = (int)a[JINJA_VARIANT].integer;
    const bool has_attribute = variant & WITH_ATTRIBUTE;
    const struct value result = make_generator(r, a, has_attribute, JINJA_TEST);

    result.generator->step = variant & ~WITH_ATTRIBUTE;
    if (has_attribute && a[1].list->count == 0)
        jinja_fail(r, "Missing parameter for attribute name");
    if (has_attribute)
        result.generator->attribute = a[1].list->items[0];
    return result;
}

/* ---- dicts ---- */

static struct value get(struct run *r, const struct value *a)
{
    const struct value *found = jinja_find(r, a[0].dict, a[1]);

    return found ? *found : a[2].type == JINJA_ABSENT ? jinja_none : a[2];
}

static struct value view(struct run *r, const struct value *a)
{
    return jinja_view(r, a[0].dict, (enum jinja_type)a[JINJA_VARIANT].integer);
}

enum { FILTER = JINJA_FILTER, OF_DICT = JINJA_METHOD(JINJA_DICT) };
enum { OF_LIST = JINJA_METHOD(JINJA_LIST) | JINJA_METHOD(JINJA_TUPLE) };

const struct builtin jinja_list_table[] = {
    {"length count", FILTER, "", length, 0},
    {"first", FILTER, "", first, 0},
    {"last", FILTER, "", last, 0},
    {"list", FILTER, "", to_list, 0},
    {"join", FILTER, "| d~ attribute", join, 0},
    {"items", FILTER, "", dict_items, 0},
    {"sort", FILTER, "| reverse case_sensitive attribute", sort, 0},
    {"dictsort", FILTER, "| case_sensitive", dictsort, 0},
    {"min", FILTER, "| case_sensitive attribute", extreme, '<'},
    {"max", FILTER, "| case_sensitive attribute", extreme, '>'},
    {"map", FILTER, "* **", map, 0},
    {"select", FILTER, "* **", select_items, JINJA_SELECT},
    {"reject", FILTER, "* **", select_items, JINJA_REJECT},
    {"selectattr", FILTER, "* **", select_items, JINJA_SELECT | WITH_ATTRIBUTE},
    {"rejectattr", FILTER, "* **", select_items, JINJA_REJECT | WITH_ATTRIBUTE},
    {"get", OF_DICT, "key | default", get, 0},
    {"keys", OF_DICT, "", view, JINJA_KEYS},
    {"values", OF_DICT, "", view, JINJA_VALUES},
    {"items", OF_DICT, "", view, JINJA_ITEMS},
    {"clear pop popitem setdefault update", OF_DICT, "", NULL, 0},
    {"copy fromkeys", OF_DICT, NULL, NULL, 0},
    {"append clear extend insert pop remove reverse sort", OF_LIST, "", NULL, 0},
    {"copy count index", OF_LIST, NULL, NULL, 0},
    {NULL, 0, NULL, NULL, 0}};
