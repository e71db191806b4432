/* Calls of filters, tests, methods and global functions; the ones of numbers and of any value. */
#include "gguf/jinja/jinja_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- calls ---- */

const struct builtin *jinja_find_builtin(unsigned kinds, const struct text *name)
{
    static const struct builtin *const tables[] = {jinja_text_table, jinja_list_table, jinja_table};

    for (size_t i = 0; i < JINJA_COUNT(tables); i++)
        for (const struct builtin *row = tables[i]; row->names; row++)
            if ((row->kinds & kinds) == kinds && jinja_is(name, row->names))
                return row;
    return NULL;
}

static const char *kind_name(unsigned kind)
{
    return kind == JINJA_FILTER ? "filter" : kind == JINJA_TEST ? "test" : "function";
}

const struct builtin *jinja_need_builtin(struct run *r, unsigned kind, const struct text *name)
{
    const struct builtin *builtin = jinja_find_builtin(kind, name);

    if (!builtin)
        jinja_fail(r, "No %s named '%.*s'; use --chat-template NAME", kind_name(kind),
                   JINJA_SHORT(name));
    return builtin;
}

struct value jinja_function(struct run *r, const struct builtin *builtin, struct value owner)
{
    struct value value = {.type = JINJA_FUNCTION,
                          .function = jinja_alloc(r, sizeof *value.function)};

    *value.function = (struct function){builtin, owner};
    return value;
}

struct value jinja_call_builtin(struct run *r, unsigned kind, const struct builtin *builtin,
                                struct value subject, const struct call *call)
{
    const char *what = kind_name(kind), *names = builtin->names;
    const int n_name = (int)strcspn(names, " ");
    struct value a[JINJA_N_ARGUMENTS] = {subject, [JINJA_VARIANT] = jinja_int(builtin->variant)};
    size_t used = 0, n_named = call->named.count, n = 1;
    bool is_optional = false;

    if (builtin->kinds & JINJA_STR && subject.type != JINJA_ABSENT)
        a[0] = jinja_string(jinja_str(r, subject));
    for (const char *name = builtin->parameters, *end; *name; name = end + strspn(end, " ")) {
        struct text key = {.bytes = (char *)name, .n = strcspn(name, " $~")};
        const struct value *named = jinja_find(r, &call->named, jinja_string(&key));

        end = name + strcspn(name, " ");
        if (*name == '|') {
            is_optional = true;
            continue;
        }
        if (key.n == 1 && *name == '*') {
            a[n] = jinja_list(jinja_new_list(r, 0));
            while (used < call->items.count)
                jinja_push(r, a[n].list, call->items.items[used++]);
        } else if (*name == '*') {
            a[n] = jinja_dict(jinja_new_dict(r));
            *a[n].dict = call->named;
            n_named = 0;
        } else if (named && used < call->items.count) {
            jinja_fail(r, "%s %.*s() got multiple values for argument '%.*s'", what, n_name, names,
                       JINJA_SHORT(&key));
        } else if (named || used < call->items.count) {
            a[n] = named ? *named : call->items.items[used++];
            n_named -= named != NULL;
            if (name[key.n] == '$')
                jinja_need_text(r, a[n]);
            if (name[key.n] == '~')
                a[n] = jinja_string(jinja_str(r, a[n]));
        } else if (!is_optional) {
            jinja_fail(r, "%s %.*s() missing 1 required argument: '%.*s'", what, n_name, names,
                       JINJA_SHORT(&key));
        }
        n++;
    }
    if (used < call->items.count)
        jinja_fail(r, "%s %.*s() takes %zu arguments, %zu were given", what, n_name, names, n - 1,
                   call->items.count);
    if (n_named > 0)
        jinja_fail(r, "%s %.*s() got an unexpected keyword argument", what, n_name, names);
    return builtin->call(r, a);
}

/* ---- filters ---- */

static struct value default_(struct run *r, const struct value *a)
{
    const bool replaces = a[0].type == JINJA_UNDEFINED || (jinja_truth(a[2]) && !jinja_truth(a[0]));

    return !replaces ? a[0] : a[1].type == JINJA_ABSENT ? jinja_string_of(r, "") : a[1];
}

static struct value tojson(struct run *r, const struct value *a)
{
    struct text *indent = a[2].type == JINJA_STRING ? a[2].text : NULL;
    struct jinja_json_style style = {.is_ascii = jinja_truth(a[1]),
                                     .has_sorted_keys = jinja_truth(a[4])};

    if (jinja_is_integer(a[2])) {
        indent = jinja_text(r, "", 0);
        jinja_add_times(r, indent, jinja_text(r, " ", 1), a[2].integer);
    }
    style.indent = indent;
    style.item_separator = jinja_text(r, ", ", indent ? 1 : 2);
    style.key_separator = jinja_text(r, ": ", 2);
    if (a[3].type != JINJA_ABSENT && a[3].type != JINJA_NONE) {
        const struct list *separators = jinja_items(r, a[3]);

        if (separators->count != 2)
            jinja_fail(r, "tojson: separators must be two strings");
        style.item_separator = jinja_need_text(r, separators->items[0]);
        style.key_separator = jinja_need_text(r, separators->items[1]);
    }
    return jinja_string(jinja_to_json(r, a[0], &style));
}

/* Return false if the value is not a decimal number. */
static bool read_float(struct run *r, struct value value, double *number)
{
    char digits[400], *end;
    const struct text *text;

    jinja_need_defined(r, value);
    if (jinja_is_number(value))
        *number = jinja_as_double(value);
    if (value.type != JINJA_STRING)
        return jinja_is_number(value);
    text = jinja_strip(r, value.text, NULL, JINJA_BOTH);
    jinja_charge(r, text->n / 64);
    if (memchr(text->bytes, '_', text->n))
        jinja_fail(r, "a number with '_'" JINJA_NOT_IMPLEMENTED);
    if (text->n == 0 || text->n >= sizeof digits || memchr(text->bytes, '\0', text->n))
        return false;
    memcpy(digits, text->bytes, text->n);
    digits[text->n] = '\0';
    *number = strtod(digits, &end);
    return *end == '\0' && !strpbrk(digits, "xXpP()");
}

static struct value float_(struct run *r, const struct value *a)
{
    double number;

    if (read_float(r, a[0], &number))
        return jinja_float(number);
    return a[1].type == JINJA_ABSENT ? jinja_float(0) : a[1];
}

static struct value int_(struct run *r, const struct value *a)
{
    double number;

    if (jinja_is_integer(a[0]))
        return jinja_int(a[0].integer);
    if (!read_float(r, a[0], &number) || !isfinite(number))
        return a[1].type == JINJA_ABSENT ? jinja_int(0) : a[1];
    if (fabs(number) >= (a[0].type == JINJA_STRING ? 0x1p53 : 0x1p63))
        jinja_fail(r, "int: the number %g is too large", number);
    return jinja_int((int64_t)number);
}

/* ---- tests ---- */

/* Test for a type: the variant has a bit for each that holds. */
static struct value is_type(struct run *r, const struct value *a)
{
    return jinja_bool(a[JINJA_VARIANT].integer >> a[0].type & 1);
}

static struct value is_truth(struct run *r, const struct value *a)
{
    return jinja_bool(a[0].type == JINJA_BOOL && a[0].integer == a[JINJA_VARIANT].integer);
}

static struct value is_odd(struct run *r, const struct value *a)
{
    return jinja_bool(jinja_binary(r, '%', a[0], jinja_int(2)).integer == a[JINJA_VARIANT].integer);
}

static struct value compares(struct run *r, const struct value *a)
{
    return jinja_bool(jinja_compare_by(r, (unsigned)a[JINJA_VARIANT].integer, a[0], a[1]));
}

/* ---- global functions ---- */

static struct value raise_exception(struct run *r, const struct value *a)
{
    jinja_fail(r, "%.*s", a[1].text->n > 1000 ? 1000 : (int)a[1].text->n, a[1].text->bytes);
}

static struct value strftime_now(struct run *r, const struct value *a)
{
    const struct text *format = a[1].text;
    char pattern[202], text[1000];
    struct text *result = jinja_text(r, "", 0);
    size_t n;

    if (format->n > 200 || memchr(format->bytes, '\0', format->n))
        jinja_fail(r, "strftime_now: the format is longer than 200 bytes or has a NUL");
    memcpy(pattern, format->bytes, format->n);
    memcpy(pattern + format->n, " ", 2); /* so that the result of strftime() is never empty */
    for (const char *at = strchr(pattern, '%'); at && at[1]; at = strchr(at + 2, '%'))
        if (strchr("fzZ", at[1])) /* differ from Python's */
            jinja_fail(r, "strftime_now('%%%c')" JINJA_NOT_IMPLEMENTED, at[1]);
    n = strftime(text, sizeof text, pattern, r->now);
    if (n == 0)
        jinja_fail(r, "strftime_now: the text is longer than %zu bytes", sizeof text);
    jinja_add_clean(r, result, text, n - 1);
    if (memchr(format->marks, 1, format->n))
        memset(result->marks, 1, result->n);
    return jinja_string(result);
}

static struct value range(struct run *r, const struct value *a)
{
    const bool has_stop = a[2].type != JINJA_ABSENT;
    const int64_t start = has_stop ? jinja_need_int(r, a[1], 0) : 0;
    const int64_t stop = jinja_need_int(r, a[has_stop ? 2 : 1], 0),
                  step = jinja_need_int(r, a[3], 1);
    struct value result = {.type = JINJA_RANGE, .list = jinja_new_list(r, 0)};

    if (step == 0)
        jinja_fail(r, "range() arg 3 must not be zero");
    for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
        if (result.list->count == 100000)
            jinja_fail(r,
                       "Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).");
        jinja_push(r, result.list, jinja_int(i));
        if (__builtin_add_overflow(i, step, &i))
            break;
    }
    return result;
}

void jinja_need_public(struct run *r, const struct text *name)
{
    if (name->n && name->bytes[0] == '_')
        jinja_fail(r,
                   "a namespace cannot have the attribute '%.*s', which starts with an underscore",
                   JINJA_SHORT(name));
}

/* Make a dict, or a namespace, whose members do not start with an underscore. */
static struct value make_dict(struct run *r, const struct value *a)
{
    const struct value result = {.type = (enum jinja_type)a[JINJA_VARIANT].integer,
                                 .dict = jinja_new_dict(r)},
                       *given = a[1].list->items;
    const size_t n_given = a[1].list->count;

    if (n_given > 1)
        jinja_fail(r, "dict expected at most 1 argument, got %zu", n_given);
    if (n_given && given->type != JINJA_DICT && given->type != JINJA_UNDEFINED)
        jinja_fail(r, "dict() of a %s" JINJA_NOT_IMPLEMENTED, jinja_type_name(*given));
    if (n_given && given->type == JINJA_DICT)
        jinja_set_all(r, result.dict, given->dict);
    jinja_set_all(r, result.dict, a[2].dict);
    for (size_t i = 0; result.type == JINJA_NAMESPACE && i < result.dict->count; i++)
        if (result.dict->entries[i].key.type == JINJA_STRING)
            jinja_need_public(r, result.dict->entries[i].key.text);
    return result;
}

enum {
    UNDEFINED = 1 << JINJA_UNDEFINED,
    INTEGER = 1 << JINJA_INT | 1 << JINJA_BIG,
    NUMBER = INTEGER | 1 << JINJA_BOOL | 1 << JINJA_FLOAT,
    SEQUENCE = UNDEFINED | 1 << JINJA_STRING | 1 << JINJA_LIST | 1 << JINJA_TUPLE |
               1 << JINJA_RANGE | 1 << JINJA_DICT,
    ITERABLE = SEQUENCE | 1 << JINJA_KEYS | 1 << JINJA_VALUES | 1 << JINJA_ITEMS |
               1 << JINJA_GENERATOR | 1 << JINJA_LOOP,
};

const struct builtin jinja_table[] = {
    {"default d", JINJA_FILTER, "| default_value boolean", default_, 0},
    {"tojson", JINJA_FILTER, "| ensure_ascii indent separators sort_keys", tojson, 0},
    {"float", JINJA_FILTER, "| default", float_, 0},
    {"int", JINJA_FILTER, "| default", int_, 0},
    {"defined", JINJA_TEST, "", is_type, ~UNDEFINED},
    {"undefined", JINJA_TEST, "", is_type, UNDEFINED},
    {"none", JINJA_TEST, "", is_type, 1 << JINJA_NONE},
    {"boolean", JINJA_TEST, "", is_type, 1 << JINJA_BOOL},
    {"integer", JINJA_TEST, "", is_type, INTEGER},
    {"float", JINJA_TEST, "", is_type, 1 << JINJA_FLOAT},
    {"number", JINJA_TEST, "", is_type, NUMBER},
    {"string", JINJA_TEST, "", is_type, 1 << JINJA_STRING},
    {"mapping", JINJA_TEST, "", is_type, 1 << JINJA_DICT},
    {"sequence", JINJA_TEST, "", is_type, SEQUENCE},
    {"iterable", JINJA_TEST, "", is_type, ITERABLE},
    {"true", JINJA_TEST, "", is_truth, 1},
    {"false", JINJA_TEST, "", is_truth, 0},
    {"odd", JINJA_TEST, "", is_odd, 1},
    {"even", JINJA_TEST, "", is_odd, 0},
    {"equalto eq ==", JINJA_TEST, "other", compares, JINJA_OP('=', '=')},
    {"ne !=", JINJA_TEST, "other", compares, JINJA_OP('!', '=')},
    {"lt lessthan <", JINJA_TEST, "other", compares, '<'},
    {"le <=", JINJA_TEST, "other", compares, JINJA_OP('<', '=')},
    {"gt greaterthan >", JINJA_TEST, "other", compares, '>'},
    {"ge >=", JINJA_TEST, "other", compares, JINJA_OP('>', '=')},
    {"in", JINJA_TEST, "seq", compares, JINJA_OP('i', 'n')},
    {"raise_exception", JINJA_GLOBAL, "message~", raise_exception, 0},
    {"strftime_now", JINJA_GLOBAL, "format$", strftime_now, 0},
    {"range", JINJA_GLOBAL, "start | stop step", range, 0},
    {"dict", JINJA_GLOBAL, "* **", make_dict, JINJA_DICT},
    {"namespace", JINJA_GLOBAL, "* **", make_dict, JINJA_NAMESPACE},
    {NULL, 0, NULL, NULL, 0}};
