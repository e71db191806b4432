/* Filters of numbers and of any value, tests, and global functions. */
#include "gguf/jinja/jinja_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- filters ---- */

static struct value default_(struct run *run, const struct value *a)
{
    const bool replaces = a[0].type == JINJA_UNDEFINED || (jinja_truth(a[2]) && !jinja_truth(a[0]));

    return !replaces ? a[0] : a[1].type == JINJA_ABSENT ? jinja_string_of(run, "") : a[1];
}

static struct value tojson(struct run *run, const struct value *a)
{
    struct jinja_json_style style = {.is_ascii = jinja_truth(a[1]),
                                     .has_sorted_keys = jinja_truth(a[4])};
    struct builder *indent = jinja_builder(run);

    if (jinja_is_integer(a[2]))
        jinja_add_times(run, indent, jinja_text_make(run, " ", 1), a[2].integer);
    if (a[2].type == JINJA_STRING)
        jinja_add_text(run, indent, a[2].text);
    if (jinja_is_integer(a[2]) || a[2].type == JINJA_STRING)
        style.indent = jinja_built(run, indent);
    style.item_separator = jinja_string_of(run, style.indent ? "," : ", ").text;
    style.key_separator = jinja_string_of(run, ": ").text;
    if (a[3].type != JINJA_ABSENT && a[3].type != JINJA_NONE) {
        const struct list *separators = jinja_items(run, a[3]);

        if (separators->count != 2)
            jinja_fail(run, "tojson: separators must be two strings");
        style.item_separator = jinja_need_text(run, separators->items[0]);
        style.key_separator = jinja_need_text(run, separators->items[1]);
    }
    return jinja_string(jinja_to_json(run, a[0], &style));
}

/* Return false if the value is not a decimal number. */
static bool read_float(struct run *run, struct value value, double *number)
{
    char digits[400], *end;
    const struct text *text;

    if (value.type == JINJA_UNDEFINED)
        jinja_fail_undefined(run, value);
    if (jinja_is_number(value))
        *number = jinja_as_double(value);
    if (value.type != JINJA_STRING)
        return jinja_is_number(value);
    text = jinja_text_strip(run, value.text, NULL, true, true);
    if (memchr(text->bytes, '_', text->n_bytes))
        jinja_fail(run, "a number with '_'" JINJA_NOT_IMPLEMENTED);
    if (text->n_bytes == 0 || text->n_bytes >= sizeof digits ||
        memchr(text->bytes, '\0', text->n_bytes))
        return false;
    memcpy(digits, text->bytes, text->n_bytes);
    digits[text->n_bytes] = '\0';
    *number = strtod(digits, &end);
    return *end == '\0' && !strpbrk(digits, "xXpP()");
}

static struct value float_(struct run *run, const struct value *a)
{
    double number;

    if (read_float(run, a[0], &number))
        return jinja_float(number);
    return a[1].type == JINJA_ABSENT ? jinja_float(0) : a[1];
}

static struct value int_(struct run *run, const struct value *a)
{
    double number;

    if (jinja_is_integer(a[0]))
        return jinja_int(a[0].integer);
    if (!read_float(run, a[0], &number) || !isfinite(number))
        return a[1].type == JINJA_ABSENT ? jinja_int(0) : a[1];
    if (fabs(number) >= (a[0].type == JINJA_STRING ? 0x1p53 : 0x1p63))
        jinja_fail(run, "int: the number %g is too large", number);
    return jinja_int((int64_t)number);
}

const struct builtin jinja_other_filters[] = {
    {"default", "| default_value boolean", default_, 0},
    {"d", "| default_value boolean", default_, 0},
    {"tojson", "| ensure_ascii indent separators sort_keys", tojson, 0},
    {"float", "| default", float_, 0},
    {"int", "| default", int_, 0},
    {NULL, NULL, NULL, 0}};

/* ---- tests ---- */

#define TEST(name, condition)                                                                      \
    static struct value name(struct run *run, const struct value *a)                               \
    {                                                                                              \
        (void)run;                                                                                 \
        return jinja_bool(condition);                                                              \
    }
TEST(is_defined, a[0].type != JINJA_UNDEFINED)
TEST(is_undefined, a[0].type == JINJA_UNDEFINED)
TEST(is_none, a[0].type == JINJA_NONE)
TEST(is_boolean, a[0].type == JINJA_BOOL)
TEST(is_true, a[0].type == JINJA_BOOL && a[0].integer)
TEST(is_false, a[0].type == JINJA_BOOL && !a[0].integer)
TEST(is_integer, a[0].type == JINJA_INT || a[0].type == JINJA_BIG)
TEST(is_float, a[0].type == JINJA_FLOAT)
TEST(is_number, jinja_is_number(a[0]) || a[0].type == JINJA_BIG)
TEST(is_string, a[0].type == JINJA_STRING)
TEST(is_mapping, a[0].type == JINJA_DICT)
TEST(is_sequence, a[0].type == JINJA_STRING || a[0].type == JINJA_UNDEFINED ||
                      a[0].type == JINJA_DICT || jinja_is_sequence(a[0]))
TEST(is_iterable,
     a[0].type == JINJA_UNDEFINED ||
         (a[0].type >= JINJA_STRING && a[0].type <= JINJA_LOOP && a[0].type != JINJA_NAMESPACE))
TEST(is_odd, jinja_binary(run, '%', a[0], jinja_int(2)).integer == 1)
TEST(is_even, jinja_binary(run, '%', a[0], jinja_int(2)).integer == 0)
TEST(compares, jinja_compare_by(run, (unsigned)a[JINJA_VARIANT].integer, a[0], a[1]))

const struct builtin jinja_tests[] = {{"defined", "", is_defined, 0},
                                      {"undefined", "", is_undefined, 0},
                                      {"none", "", is_none, 0},
                                      {"boolean", "", is_boolean, 0},
                                      {"true", "", is_true, 0},
                                      {"false", "", is_false, 0},
                                      {"integer", "", is_integer, 0},
                                      {"float", "", is_float, 0},
                                      {"number", "", is_number, 0},
                                      {"string", "", is_string, 0},
                                      {"mapping", "", is_mapping, 0},
                                      {"sequence", "", is_sequence, 0},
                                      {"iterable", "", is_iterable, 0},
                                      {"odd", "", is_odd, 0},
                                      {"even", "", is_even, 0},
                                      {"equalto", "other", compares, OPERATOR('=', '=')},
                                      {"eq", "other", compares, OPERATOR('=', '=')},
                                      {"==", "other", compares, OPERATOR('=', '=')},
                                      {"ne", "other", compares, OPERATOR('!', '=')},
                                      {"!=", "other", compares, OPERATOR('!', '=')},
                                      {"lt", "other", compares, '<'},
                                      {"lessthan", "other", compares, '<'},
                                      {"<", "other", compares, '<'},
                                      {"le", "other", compares, OPERATOR('<', '=')},
                                      {"<=", "other", compares, OPERATOR('<', '=')},
                                      {"gt", "other", compares, '>'},
                                      {"greaterthan", "other", compares, '>'},
                                      {">", "other", compares, '>'},
                                      {"ge", "other", compares, OPERATOR('>', '=')},
                                      {">=", "other", compares, OPERATOR('>', '=')},
                                      {"in", "seq", compares, 'i'},
                                      {NULL, NULL, NULL, 0}};

/* ---- global functions ---- */

static struct value raise_exception(struct run *run, const struct value *a)
{
    const struct text *text = jinja_str(run, a[1]);

    jinja_fail(run, "%.*s", text->n_bytes > 1000 ? 1000 : (int)text->n_bytes, text->bytes);
}

static struct value strftime_now(struct run *run, const struct value *a)
{
    const struct text *format = jinja_need_text(run, a[1]);
    char *pattern = jinja_alloc(run, format->n_bytes + 2), text[1000];
    size_t n;

    if (format->n_bytes > 200 || memchr(format->bytes, '\0', format->n_bytes))
        jinja_fail(run, "strftime_now: the format is longer than 200 bytes or has a NUL");
    memcpy(pattern, format->bytes, format->n_bytes);
    pattern[format->n_bytes] = ' '; /* so that the result of strftime() is never empty */
    n = strftime(text, sizeof text, pattern, run->now);
    if (n == 0)
        jinja_fail(run, "strftime_now: the text is longer than %zu bytes", sizeof text);
    return jinja_string(jinja_text_clean(run, text, n - 1));
}

static struct value range(struct run *run, const struct value *a)
{
    const bool has_stop = a[2].type != JINJA_ABSENT;
    const int64_t start = has_stop ? jinja_need_int(run, a[1], 0) : 0;
    const int64_t stop = jinja_need_int(run, has_stop ? a[2] : a[1], 0),
                  step = jinja_need_int(run, a[3], 1);
    struct value result = {.type = JINJA_RANGE, .list = jinja_list_make(run, 0)};

    if (step == 0)
        jinja_fail(run, "range() arg 3 must not be zero");
    for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
        if (result.list->count == 100000)
            jinja_fail(run,
                       "Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).");
        jinja_list_add(run, result.list, jinja_int(i));
        if (__builtin_add_overflow(i, step, &i))
            break;
    }
    return result;
}

static struct value make_dict(struct run *run, const struct value *a)
{
    struct value result = {.type = JINJA_DICT, .dict = jinja_dict_make(run)};
    const struct dict *source = NULL;

    if (a[1].list->count > 1)
        jinja_fail(run, "dict expected at most 1 argument, got %zu", a[1].list->count);
    if (a[1].list->count && a[1].list->items[0].type == JINJA_DICT)
        source = a[1].list->items[0].dict;
    for (size_t i = 0; source && i < source->count; i++)
        jinja_dict_set(run, result.dict, source->entries[i].key, source->entries[i].value);
    if (a[1].list->count && !source) {
        const struct list *pairs = jinja_items(run, a[1].list->items[0]);

        for (size_t i = 0; i < pairs->count; i++) {
            const struct list *pair = jinja_items(run, pairs->items[i]);

            if (pair->count != 2)
                jinja_fail(run,
                           "dictionary update sequence element #%zu has length %zu; 2 is required",
                           i, pair->count);
            jinja_dict_set(run, result.dict, pair->items[0], pair->items[1]);
        }
    }
    for (size_t i = 0; i < a[2].dict->count; i++)
        jinja_dict_set(run, result.dict, a[2].dict->entries[i].key, a[2].dict->entries[i].value);
    return result;
}

static struct value make_namespace(struct run *run, const struct value *a)
{
    struct value result = make_dict(run, a);

    for (size_t i = 0; i < result.dict->count; i++) {
        const struct value key = result.dict->entries[i].key;

        if (key.type == JINJA_STRING && key.text->n_bytes && key.text->bytes[0] == '_')
            jinja_fail(run,
                       "Chat templates cannot store underscore-prefixed attributes on a namespace, "
                       "but got '%.*s'",
                       JINJA_SHORT(key.text));
    }
    result.type = JINJA_NAMESPACE;
    return result;
}

const struct builtin jinja_globals[] = {
    {"raise_exception", "message", raise_exception, 0}, {"strftime_now", "format", strftime_now, 0},
    {"range", "start | stop step", range, 0},           {"dict", "* **", make_dict, 0},
    {"namespace", "* **", make_namespace, 0},           {NULL, NULL, NULL, 0}};
