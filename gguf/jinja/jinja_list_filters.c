/* Filters of lists and other iterables. */
#include "gguf/jinja/jinja_run.h"

#include <string.h>

/* Return the value as lower case if it is a string and the case is ignored. */
static struct value fold(struct run *run, struct value value, bool is_case_sensitive)
{
    return value.type == JINJA_STRING && !is_case_sensitive
               ? jinja_string(jinja_text_case(run, value.text, JINJA_LOWER))
               : value;
}

/* Return the attribute of an item by a name with dots ("function.name", "0") or a number. */
static struct value attribute_of(struct run *run, struct value item, struct value path,
                                 struct value if_missing)
{
    if (path.type == JINJA_ABSENT || path.type == JINJA_NONE)
        return item;
    if (path.type != JINJA_STRING) {
        item = jinja_item(run, item, path);
        return item.type == JINJA_UNDEFINED && if_missing.type != JINJA_ABSENT ? if_missing : item;
    }
    for (size_t start = 0; start <= path.text->n_bytes;) {
        const char *bytes = path.text->bytes + start,
                   *dot = memchr(bytes, '.', path.text->n_bytes - start);
        const size_t end = dot ? (size_t)(dot - path.text->bytes) : path.text->n_bytes;
        int64_t number = 0;
        size_t i = start;

        for (; i < end && i < start + 9 && path.text->bytes[i] >= '0' && path.text->bytes[i] <= '9';
             i++)
            number = 10 * number + (path.text->bytes[i] - '0');
        item = jinja_item(run, item,
                          i == end && end > start
                              ? jinja_int(number)
                              : jinja_string(jinja_text_cut(run, path.text, start, end)));
        start = end + 1;
        if (item.type == JINJA_UNDEFINED && if_missing.type != JINJA_ABSENT)
            item = if_missing;
    }
    return item;
}

static struct value length(struct run *run, const struct value *a)
{
    if (a[0].type == JINJA_STRING)
        return jinja_int((int64_t)jinja_text_chars(a[0].text));
    if (a[0].type == JINJA_DICT)
        return jinja_int((int64_t)a[0].dict->count);
    if (jinja_is_sequence(a[0]) || a[0].type == JINJA_VIEW || a[0].type == JINJA_UNDEFINED)
        return jinja_int((int64_t)jinja_items(run, a[0])->count);
    jinja_fail(run, "object of type '%s' has no len()", jinja_type_name(a[0]));
}

static struct value first(struct run *run, const struct value *a)
{
    struct value item;

    if (a[0].type == JINJA_GENERATOR)
        return jinja_generate(run, a[0].generator, &item)
                   ? item
                   : jinja_undefined_because(run, "No first item, sequence was empty.");
    return jinja_items(run, a[0])->count
               ? jinja_items(run, a[0])->items[0]
               : jinja_undefined_because(run, "No first item, sequence was empty.");
}

static struct value last(struct run *run, const struct value *a)
{
    const struct list *items;

    if (a[0].type == JINJA_GENERATOR)
        jinja_fail(run, "'generator' object is not reversible");
    items = jinja_items(run, a[0]);
    return items->count ? items->items[items->count - 1]
                        : jinja_undefined_because(run, "No last item, sequence was empty.");
}

static struct value to_list(struct run *run, const struct value *a)
{
    return jinja_list(jinja_items(run, a[0]));
}

/* Return a generator of items. */
static struct value generate_from(struct run *run, struct list *items)
{
    struct value result = {.type = JINJA_GENERATOR,
                           .generator = jinja_alloc(run, sizeof *result.generator)};

    result.generator->items = items;
    return result;
}

static struct value join(struct run *run, const struct value *a)
{
    const struct list *items = jinja_items(run, a[0]);
    const struct text *separator = a[1].type == JINJA_ABSENT ? NULL : jinja_str(run, a[1]);
    struct builder *builder = jinja_builder(run);

    for (size_t i = 0; i < items->count; i++) {
        if (i > 0 && separator)
            jinja_add_text(run, builder, separator);
        jinja_add_text(run, builder,
                       jinja_str(run, attribute_of(run, items->items[i], a[2], jinja_absent())));
    }
    return jinja_string(jinja_built(run, builder));
}

static bool step_not_mapping(struct run *run, const struct generator *generator, struct value *item)
{
    (void)generator;
    (void)item;
    jinja_fail(run, "Can only get item pairs from a mapping.");
}

static struct value dict_items(struct run *run, const struct value *a)
{
    const bool is_wrong = a[0].type != JINJA_DICT && a[0].type != JINJA_UNDEFINED;
    struct value result = generate_from(run, jinja_list_make(run, 1));

    if (a[0].type == JINJA_DICT)
        result.generator->items = jinja_dict_view(run, a[0].dict, "dict_items").list;
    if (is_wrong) { /* an error for who uses the result */
        jinja_list_add(run, result.generator->items, a[0]);
        result.generator->step = step_not_mapping;
    }
    return result;
}

/* ---- order ---- */

/* Merge sort, which is stable. Each item is a tuple of its key and the item. */
static void merge_sort(struct run *run, struct value *items, struct value *spare, size_t n,
                       bool is_reverse)
{
    const size_t half = n / 2;
    size_t i = 0, j = half;

    if (n < 2)
        return;
    merge_sort(run, items, spare, half, is_reverse);
    merge_sort(run, items + half, spare, n - half, is_reverse);
    for (size_t k = 0; k < n; k++) {
        bool takes_right = i == half;

        if (i < half && j < n) {
            const struct value left = items[i].list->items[0], right = items[j].list->items[0];

            takes_right = is_reverse ? jinja_compare(run, "<", left, right) == -1
                                     : jinja_compare(run, "<", right, left) == -1;
        }
        spare[k] = items[takes_right ? j++ : i++];
    }
    memcpy(items, spare, n * sizeof *items);
}

struct list *jinja_sorted(struct run *run, const struct list *items, struct value attribute,
                          bool is_case_sensitive, bool is_reverse)
{
    struct list *keyed = jinja_list_make(run, items->count),
                *result = jinja_list_make(run, items->count);

    if (attribute.type == JINJA_STRING &&
        memchr(attribute.text->bytes, ',', attribute.text->n_bytes))
        jinja_fail(run, "sort by several attributes" JINJA_NOT_IMPLEMENTED);
    for (size_t i = 0; i < items->count; i++) {
        struct list *pair = jinja_list_make(run, 2);
        const struct value key = attribute_of(run, items->items[i], attribute, jinja_absent());

        jinja_list_add(run, pair, fold(run, key, is_case_sensitive));
        jinja_list_add(run, pair, items->items[i]);
        jinja_list_add(run, keyed, jinja_list(pair));
    }
    merge_sort(run, keyed->items, result->items, keyed->count, is_reverse);
    for (size_t i = 0; i < keyed->count; i++)
        jinja_list_add(run, result, keyed->items[i].list->items[1]);
    return result;
}

static struct value sort(struct run *run, const struct value *a)
{
    return jinja_list(
        jinja_sorted(run, jinja_items(run, a[0]), a[3], jinja_truth(a[2]), jinja_truth(a[1])));
}

static struct value dictsort(struct run *run, const struct value *a)
{
    const bool is_by_value = a[2].type == JINJA_STRING && jinja_text_is(a[2].text, "value");

    if (!is_by_value && a[2].type != JINJA_ABSENT &&
        !jinja_text_is(jinja_need_text(run, a[2]), "key"))
        jinja_fail(run, "You can only sort by either \"key\" or \"value\"");
    if (a[0].type != JINJA_DICT)
        jinja_fail(run, "dictsort needs a dict, not %s", jinja_type_name(a[0]));
    return jinja_list(jinja_sorted(run, jinja_dict_view(run, a[0].dict, "dict_items").list,
                                   jinja_int(is_by_value), jinja_truth(a[1]), jinja_truth(a[3])));
}

static struct value unique(struct run *run, const struct value *a)
{
    const struct list *items = jinja_items(run, a[0]);
    struct dict *seen = jinja_dict_make(run);
    struct list *result = jinja_list_make(run, 0);

    for (size_t i = 0; i < items->count; i++) {
        const struct value key =
            fold(run, attribute_of(run, items->items[i], a[2], jinja_absent()), jinja_truth(a[1]));

        if (!jinja_dict_find(run, seen, key))
            jinja_list_add(run, result, items->items[i]);
        jinja_dict_set(run, seen, key, jinja_none());
    }
    return generate_from(run, result);
}

static struct value extreme(struct run *run, const struct value *a)
{
    const struct list *items = jinja_items(run, a[0]);
    struct value best = {.type = JINJA_ABSENT}, best_key = {.type = JINJA_ABSENT};

    for (size_t i = 0; i < items->count; i++) {
        const struct value key =
            fold(run, attribute_of(run, items->items[i], a[2], jinja_absent()), jinja_truth(a[1]));

        if (i == 0 || jinja_compare_by(run, (unsigned)a[JINJA_VARIANT].integer, key, best_key)) {
            best = items->items[i];
            best_key = key;
        }
    }
    return items->count ? best
                        : jinja_undefined_because(run, "No aggregated item, sequence was empty.");
}

/* ---- generators ---- */

static bool step_map(struct run *run, const struct generator *generator, struct value *item)
{
    if (generator->builtin)
        *item = jinja_call_builtin(run, "filter", generator->builtin, *item, &generator->call);
    else
        *item = attribute_of(run, *item, generator->attribute, generator->if_missing);
    return true;
}

static bool step_select(struct run *run, const struct generator *generator, struct value *item)
{
    const struct value tested = attribute_of(run, *item, generator->attribute, jinja_absent());

    if (!generator->builtin)
        return jinja_truth(tested) != generator->is_negated;
    return jinja_truth(jinja_call_builtin(run, "test", generator->builtin, tested,
                                          &generator->call)) != generator->is_negated;
}

/* Make a generator whose filter or test is argument `at`, with the arguments that follow. */
static struct generator *make_generator(struct run *run, const struct value *a, size_t at,
                                        bool is_map)
{
    struct generator *generator = jinja_alloc(run, sizeof *generator);
    const struct list *given = a[1].list;

    generator->source = a[0];
    generator->step = is_map ? step_map : step_select;
    generator->call = (struct call){jinja_list_make(run, 0), a[2].dict->count ? a[2].dict : NULL};
    for (size_t i = at + 1; i < given->count; i++)
        jinja_list_add(run, generator->call.positional, given->items[i]);
    if (at < given->count) {
        const struct text *name = jinja_need_text(run, given->items[at]);

        generator->builtin =
            is_map ? jinja_find_filter(name) : jinja_find_builtin(jinja_tests, name);
        if (!generator->builtin)
            jinja_fail_unknown(run, &(struct node){.kind = is_map ? NODE_FILTER : NODE_TEST,
                                                   .line = run->line,
                                                   .value = given->items[at]});
    }
    return generator;
}

static struct value map(struct run *run, const struct value *a)
{
    const struct value *attribute = jinja_dict_get(run, a[2].dict, "attribute"),
                       *missing = jinja_dict_get(run, a[2].dict, "default");
    struct generator *generator = make_generator(run, a, 0, true);

    if (a[1].list->count == 0) {
        if (attribute && a[2].dict->count == 1u + (missing != NULL))
            generator->attribute = *attribute;
        else
            jinja_fail(run, "map requires a filter argument");
        if (missing)
            generator->if_missing = *missing;
    }
    return (struct value){.type = JINJA_GENERATOR, .generator = generator};
}

enum { SELECT = 0, REJECT = 1, WITH_ATTRIBUTE = 2 };

static struct value select_items(struct run *run, const struct value *a)
{
    const bool has_attribute = a[JINJA_VARIANT].integer & WITH_ATTRIBUTE;
    struct generator *generator = make_generator(run, a, has_attribute, false);

    generator->is_negated = a[JINJA_VARIANT].integer & REJECT;
    if (has_attribute && a[1].list->count == 0)
        jinja_fail(run, "Missing parameter for attribute name");
    if (has_attribute)
        generator->attribute = a[1].list->items[0];
    return (struct value){.type = JINJA_GENERATOR, .generator = generator};
}

const struct builtin jinja_list_filters[] = {
    {"length", "", length, 0},
    {"count", "", length, 0},
    {"first", "", first, 0},
    {"last", "", last, 0},
    {"list", "", to_list, 0},
    {"join", "| d attribute", join, 0},
    {"items", "", dict_items, 0},
    {"sort", "| reverse case_sensitive attribute", sort, 0},
    {"dictsort", "| case_sensitive by reverse", dictsort, 0},
    {"unique", "| case_sensitive attribute", unique, 0},
    {"min", "| case_sensitive attribute", extreme, '<'},
    {"max", "| case_sensitive attribute", extreme, '>'},
    {"map", "* **", map, 0},
    {"select", "* **", select_items, SELECT},
    {"reject", "* **", select_items, REJECT},
    {"selectattr", "* **", select_items, SELECT | WITH_ATTRIBUTE},
    {"rejectattr", "* **", select_items, REJECT | WITH_ATTRIBUTE},
    {NULL, NULL, NULL, 0}};
