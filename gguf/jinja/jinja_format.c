/* The operator % of strings, and their method format(). */
#include "gguf/jinja/jinja_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void fail_format(struct run *r, const struct text *format)
{
    jinja_fail(r, "the format '%.*s'" JINJA_NOT_IMPLEMENTED, JINJA_SHORT(format));
}

/* Read a width, a precision or an index of at most 300; without digits it is `if_none`. */
static int read_number(struct run *r, const struct text *format, size_t *at, int if_none)
{
    int number = if_none;

    for (; *at < format->n && format->bytes[*at] >= '0' && format->bytes[*at] <= '9'; ++*at) {
        number = 10 * (number < 0 ? 0 : number) + (format->bytes[*at] - '0');
        if (number > 300)
            fail_format(r, format);
    }
    return number;
}

static bool take(const struct text *format, size_t *at, char character)
{
    const bool is_there = *at < format->n && format->bytes[*at] == character;

    *at += is_there;
    return is_there;
}

/* Format as printf does: %s, %d and %f, with a width, for %f a precision, and zeros before it. */
static void add_value(struct run *r, struct text *out, const struct text *format, size_t *at,
                      struct value value)
{
    const bool has_zeros = take(format, at, '0');
    const int width = read_number(r, format, at, 0),
              precision = take(format, at, '.') ? read_number(r, format, at, 0) : -1;
    const char type = *at < format->n ? format->bytes[(*at)++] : '\0';
    const double number = jinja_is_number(value) ? jinja_as_double(value) : 0;
    char digits[700] = ""; /* the longest has 310 characters before the point and 300 after it */
    struct text *text = type == 's' ? jinja_str(r, value) : NULL;

    if (!type || !strchr("sdf", type) || (precision >= 0 && type != 'f') || (has_zeros && text) ||
        (value.type == JINJA_FLOAT && !(fabs(number) < (type == 'd' ? 0x1p63 : INFINITY))))
        fail_format(r, format);
    if (text)
        jinja_add_times(r, out, jinja_text(r, " ", 1), width - (int64_t)jinja_chars(r, text));
    else if (!jinja_is_number(value))
        jinja_fail(r, "%%%c format: a real number is required, not %s", type,
                   jinja_type_name(value));
    else if (type == 'f')
        snprintf(digits, sizeof digits, has_zeros ? "%0*.*f" : "%*.*f", width,
                 precision < 0 ? 6 : precision, number);
    else
        snprintf(digits, sizeof digits, has_zeros ? "%0*lld" : "%*lld", width,
                 value.type == JINJA_FLOAT ? (long long)number : (long long)value.integer);
    jinja_add_text(r, out, text ? text : jinja_text(r, digits, strlen(digits)));
}

struct text *jinja_percent_format(struct run *r, const struct text *format, struct value arguments)
{
    struct text *out = jinja_text(r, "", 0);
    const struct list one = {.items = &arguments, .count = 1},
                      *list = arguments.type == JINJA_TUPLE ? arguments.list : &one;
    /* Python takes all of these for mappings. */
    const bool is_named = arguments.type == JINJA_DICT || arguments.type == JINJA_LIST ||
                          arguments.type == JINJA_RANGE || arguments.type == JINJA_UNDEFINED;
    size_t used = 0;

    for (size_t at = 0; at < format->n;) {
        const size_t start = at++;

        if (format->bytes[start] != '%' || take(format, &at, '%'))
            jinja_add_part(r, out, format, start, start + 1);
        else if (used == list->count)
            jinja_fail(r, "not enough arguments for format string");
        else
            add_value(r, out, format, &at, list->items[used++]);
    }
    if (used < list->count && !is_named)
        jinja_fail(r, "not all arguments converted during string formatting");
    return out;
}

/* Fields are {}, {NUMBER} or {NAME}, each with ":d" or without. */
struct value jinja_method_format(struct run *r, const struct value *a)
{
    const struct text *format = a[0].text;
    struct text *out = jinja_text(r, "", 0), *name;
    int n_automatic = 0;

    for (size_t at = 0, start; at < format->n;) {
        const char brace = format->bytes[at];
        const struct value *found = NULL;
        bool needs_integer;
        int index;

        start = at++;
        if ((brace != '{' && brace != '}') || take(format, &at, brace)) {
            jinja_add_part(r, out, format, start, start + 1);
            continue;
        }
        for (start = at; at < format->n && !strchr("{}[.:!", format->bytes[at]);)
            at++;
        name = jinja_cut(r, format, start, at);
        needs_integer = take(format, &at, ':');
        if (brace == '}' || (needs_integer && !take(format, &at, 'd')) || !take(format, &at, '}'))
            fail_format(r, format);
        index = name->n ? read_number(r, format, &start, -1) : n_automatic++;
        if (index >= 0 && (size_t)index < a[1].list->count)
            found = &a[1].list->items[index];
        else if (index < 0)
            found = jinja_find(r, a[2].dict, jinja_string(name));
        if (!found)
            jinja_fail(r, "format: there is no argument for {%.*s}", JINJA_SHORT(name));
        if (needs_integer && found->type != JINJA_INT)
            fail_format(r, format);
        jinja_add_text(r, out, jinja_str(r, *found));
    }
    return jinja_string(out);
}
