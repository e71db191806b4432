/* The operator % of strings, and their method format(). */
#include "gguf/jinja/jinja_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void fail_format(struct run *run, const struct text *format)
{
    jinja_fail(run, "the format '%.*s'" JINJA_NOT_IMPLEMENTED, JINJA_SHORT(format));
}

/* Read a width, a precision or an index of at most 300; without digits it is `if_none`. */
static int read_number(struct run *run, const struct text *format, size_t *at, int if_none)
{
    int number = if_none;

    for (; *at < format->n_bytes && format->bytes[*at] >= '0' && format->bytes[*at] <= '9'; ++*at) {
        number = 10 * (number < 0 ? 0 : number) + (format->bytes[*at] - '0');
        if (number > 300)
            fail_format(run, format);
    }
    return number;
}

static bool take(const struct text *format, size_t *at, char character)
{
    const bool is_there = *at < format->n_bytes && format->bytes[*at] == character;

    *at += is_there;
    return is_there;
}

/* Format as printf does: %s, %d and %f with the flags - and 0, a width and a precision. */
static void add_value(struct run *run, struct builder *builder, const struct text *format,
                      size_t *at, struct value value)
{
    const bool is_left = take(format, at, '-'), has_zeros = !is_left && take(format, at, '0');
    const int width = read_number(run, format, at, 0) * (is_left ? -1 : 1);
    const int precision = take(format, at, '.') ? read_number(run, format, at, 0) : -1;
    const bool is_text = take(format, at, 's'), is_integer = !is_text && take(format, at, 'd');
    char digits[700]; /* the longest has 310 characters before the point and 300 after it */

    if (is_text) {
        struct text *text = jinja_str(run, value), *space = jinja_text_make(run, " ", 1);
        int64_t n;

        if (precision >= 0)
            text = jinja_text_cut(run, text, 0, jinja_text_offset(text, (size_t)precision));
        n = abs(width) - (int64_t)jinja_text_chars(text);
        jinja_add_times(run, builder, space, is_left ? 0 : n);
        jinja_add_text(run, builder, text);
        jinja_add_times(run, builder, space, is_left ? n : 0);
        return;
    }
    if ((!is_integer && !take(format, at, 'f')) || (is_integer && precision >= 0))
        fail_format(run, format);
    if (!jinja_is_number(value))
        jinja_fail(run, "%%%c format: a real number is required, not %s", is_integer ? 'd' : 'f',
                   jinja_type_name(value));
    if (value.type == JINJA_FLOAT && !(fabs(value.number) < (is_integer ? 0x1p63 : INFINITY)))
        fail_format(run, format);
    if (is_integer)
        snprintf(digits, sizeof digits, has_zeros ? "%0*lld" : "%*lld", width,
                 value.type == JINJA_FLOAT ? (long long)value.number : (long long)value.integer);
    else
        snprintf(digits, sizeof digits, has_zeros ? "%0*.*f" : "%*.*f", width,
                 precision < 0 ? 6 : precision, jinja_as_double(value));
    jinja_add_string(run, builder, digits);
}

struct text *jinja_percent_format(struct run *run, const struct text *format,
                                  struct value arguments)
{
    struct builder *builder = jinja_builder(run);
    const struct list one = {.items = &arguments, .count = 1},
                      *list = arguments.type == JINJA_TUPLE ? arguments.list : &one;
    /* Python takes all of these for mappings. */
    const bool is_named = arguments.type == JINJA_DICT || arguments.type == JINJA_LIST ||
                          arguments.type == JINJA_RANGE || arguments.type == JINJA_UNDEFINED;
    size_t used = 0;

    for (size_t at = 0; at < format->n_bytes;) {
        const char *percent = memchr(format->bytes + at, '%', format->n_bytes - at);
        const size_t end = percent ? (size_t)(percent - format->bytes) : format->n_bytes;

        jinja_add_text(run, builder, jinja_text_cut(run, format, at, end));
        at = end + 1;
        if (!percent)
            break;
        if (take(format, &at, '%')) {
            jinja_add_string(run, builder, "%");
            continue;
        }
        if (used == list->count)
            jinja_fail(run, "not enough arguments for format string");
        add_value(run, builder, format, &at, list->items[used++]);
    }
    if (used < list->count && !is_named)
        jinja_fail(run, "not all arguments converted during string formatting");
    return jinja_built(run, builder);
}

/* Fields are {}, {NUMBER} or {NAME}, each with ":d" or without. */
struct value jinja_method_format(struct run *run, const struct value *a)
{
    const struct text *format = a[0].text;
    struct builder *builder = jinja_builder(run);
    size_t n_automatic = 0;

    for (size_t at = 0, end; at < format->n_bytes; at = end) {
        const struct value *found = NULL;
        const struct text *name;
        bool needs_integer;
        int index;

        for (end = at; end < format->n_bytes && !memchr("{}", format->bytes[end], 2);)
            end++;
        jinja_add_text(run, builder, jinja_text_cut(run, format, at, end));
        if (end == format->n_bytes)
            break;
        at = end + 1;
        if (take(format, &at, format->bytes[end])) {
            jinja_add(run, builder, format->bytes + end, 1, NULL);
            end = at;
            continue;
        }
        for (end = at; end < format->n_bytes && !memchr("{}[.:!", format->bytes[end], 6);)
            end++;
        name = jinja_text_cut(run, format, at, end);
        needs_integer = take(format, &end, ':');
        if (format->bytes[at - 1] == '}' || (needs_integer && !take(format, &end, 'd')) ||
            !take(format, &end, '}'))
            fail_format(run, format);
        index = read_number(run, format, &at, -1);
        if (name->n_bytes == 0)
            index = (int)n_automatic++;
        if (index >= 0 && (size_t)index < a[1].list->count)
            found = &a[1].list->items[index];
        else if (index < 0)
            found = jinja_dict_find(run, a[2].dict, jinja_string((struct text *)name));
        if (!found)
            jinja_fail(run, "format: there is no argument for {%.*s}", JINJA_SHORT(name));
        if (needs_integer && found->type != JINJA_INT)
            fail_format(run, format);
        jinja_add_text(run, builder, jinja_str(run, *found));
    }
    return jinja_string(jinja_built(run, builder));
}
