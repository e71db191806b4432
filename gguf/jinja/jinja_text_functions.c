/* Filters and methods of strings. */
#include "gguf/jinja/jinja_run.h"

#include <string.h>

static struct value change_case(struct run *r, const struct value *a)
{
    return jinja_string(jinja_change_case(r, a[0].text, (enum jinja_case)a[JINJA_VARIANT].integer));
}

/* Return the text of an argument; NULL for none. */
static const struct text *given_text(struct run *r, struct value value)
{
    return value.type == JINJA_ABSENT || value.type == JINJA_NONE ? NULL
                                                                  : jinja_need_text(r, value);
}

static struct value strip(struct run *r, const struct value *a)
{
    return jinja_string(
        jinja_strip(r, a[0].text, given_text(r, a[1]), (int)a[JINJA_VARIANT].integer));
}

/* ---- search ---- */

/* Return the offset of a part, or of white space if it is NULL, and its end; SIZE_MAX if there is
 * none. */
static size_t search(struct run *r, const struct text *text, const struct text *part, bool is_last,
                     size_t *end)
{
    size_t at = is_last ? text->n : 0;

    if (part && !is_last) {
        at = jinja_search(r, text, part, 0);
        *end = at + part->n;
        return at;
    }
    for (; is_last || at < text->n; at = is_last ? at - 1 : *end) {
        uint32_t c = 0;

        jinja_charge(r, part || at % 8 == 0);
        *end = part ? at + part->n : at < text->n ? jinja_next_char(text, at, &c) : at;
        if (part ? part->n <= text->n - at && memcmp(text->bytes + at, part->bytes, part->n) == 0
                 : jinja_is_space(c))
            return at;
        if (at == 0 && is_last)
            break;
    }
    return SIZE_MAX;
}

/* Return the part of the text between the characters a[2] and a[3]. */
static struct text *window(struct run *r, const struct value *a)
{
    return jinja_slice(r, a[0], (struct value[]){a[2], a[3], jinja_absent}).text;
}

static struct value find(struct run *r, const struct value *a)
{
    const struct text *text = window(r, a);
    size_t end, at = search(r, text, a[1].text, a[JINJA_VARIANT].integer == JINJA_RIGHT, &end);

    if (at == SIZE_MAX)
        return jinja_int(-1);
    at += (size_t)(text->bytes - a[0].text->bytes);
    return jinja_int((int64_t)jinja_chars(r, jinja_cut(r, a[0].text, 0, at)));
}

/* Test whether the text starts or ends with a string, or with one of a tuple. */
static struct value has_affix(struct run *r, const struct value *a)
{
    const struct list one = {.items = (struct value *)&a[1], .count = 1},
                      *affixes = a[1].type == JINJA_TUPLE ? a[1].list : &one;
    const struct text *text = window(r, a);

    for (size_t i = 0; i < affixes->count; i++) {
        const struct text *affix = jinja_need_text(r, affixes->items[i]);
        const size_t n = affix->n,
                     at = a[JINJA_VARIANT].integer == JINJA_RIGHT && n <= text->n ? text->n - n : 0;

        jinja_charge(r, 1 + n / 64);
        if (n <= text->n && memcmp(text->bytes + at, affix->bytes, n) == 0)
            return jinja_bool(true);
    }
    return jinja_bool(false);
}

static struct value replace(struct run *r, const struct value *a)
{
    const struct text *text = a[0].text, *old = a[1].text;
    struct text *result = jinja_text(r, "", 0);
    size_t done = 0, at = 0;

    for (int64_t n = a[3].type == JINJA_NONE ? -1 : jinja_need_int(r, a[3], -1);
         n != 0 && at <= text->n && (at = jinja_search(r, text, old, at)) != SIZE_MAX; n--) {
        jinja_add_part(r, result, text, done, at);
        jinja_add_text(r, result, a[2].text);
        done = at + old->n;
        at = old->n ? done : at == text->n ? SIZE_MAX : jinja_next_char(text, at, &(uint32_t){0});
    }
    jinja_add_part(r, result, text, done, text->n);
    return jinja_string(result);
}

/* ---- parts ---- */

static void add_part(struct run *r, struct list *list, const struct text *text, size_t start,
                     size_t end)
{
    jinja_charge(r, 1);
    jinja_push(r, list, jinja_string(jinja_cut(r, text, start, end)));
}

static struct value split(struct run *r, const struct value *a)
{
    static const struct value backward[] = {
        {.type = JINJA_ABSENT}, {.type = JINJA_ABSENT}, {.type = JINJA_INT, .integer = -1}};
    const bool is_last = a[JINJA_VARIANT].integer == JINJA_RIGHT;
    const struct text *separator = given_text(r, a[1]), *rest = a[0].text;
    const struct value parts = jinja_list(jinja_new_list(r, 0));
    size_t at, end;

    if (separator && separator->n == 0)
        jinja_fail(r, "empty separator");
    for (int64_t n = jinja_need_int(r, a[2], -1);; n--) {
        if (!separator)
            rest = jinja_strip(r, rest, NULL, (int)a[JINJA_VARIANT].integer);
        if (n == 0 || (at = search(r, rest, separator, is_last, &end)) == SIZE_MAX)
            break;
        add_part(r, parts.list, rest, is_last ? end : 0, is_last ? rest->n : at);
        rest = jinja_cut(r, rest, is_last ? 0 : end, is_last ? at : rest->n);
    }
    if (rest->n || separator)
        add_part(r, parts.list, rest, 0, rest->n);
    return is_last ? jinja_slice(r, parts, backward) : parts;
}

static struct value splitlines(struct run *r, const struct value *a)
{
    const struct text *text = a[0].text;
    struct list *list = jinja_new_list(r, 0);
    size_t start = 0;

    jinja_charge(r, text->n / 8);
    for (size_t at = 0, next; at < text->n; at = next) {
        uint32_t c;

        next = jinja_next_char(text, at, &c);
        if (!(c >= 10 && c <= 13) && !(c >= 0x1c && c <= 0x1e) && c != 0x85 && c != 0x2028 &&
            c != 0x2029)
            continue;
        next += c == '\r' && next < text->n && text->bytes[next] == '\n';
        add_part(r, list, text, start, jinja_truth(a[1]) ? next : at);
        start = next;
    }
    if (start < text->n)
        add_part(r, list, text, start, text->n);
    return jinja_list(list);
}

static struct value join(struct run *r, const struct value *a)
{
    const struct list *items = jinja_items(r, a[1]);
    struct text *result = jinja_text(r, "", 0);

    for (size_t i = 0; i < items->count; i++) {
        if (i > 0)
            jinja_add_text(r, result, a[0].text);
        jinja_add_text(r, result, jinja_need_text(r, items->items[i]));
    }
    return jinja_string(result);
}

static struct value indent(struct run *r, const struct value *a)
{
    const struct value newline = jinja_string_of(r, "\n"),
                       text = jinja_binary(r, '~', a[0], newline);
    const struct list *lines = splitlines(r, (struct value[]){text, jinja_absent}).list;
    struct text *result = jinja_text(r, "", 0), *spaces = jinja_text(r, "", 0);

    jinja_add_times(r, spaces, jinja_text(r, " ", 1), jinja_need_int(r, a[1], 4));
    for (size_t i = 0; i < lines->count; i++) {
        if (i > 0)
            jinja_add_text(r, result, newline.text);
        if (i > 0 ? lines->items[i].text->n > 0 : jinja_truth(a[2]))
            jinja_add_text(r, result, spaces);
        jinja_add_text(r, result, lines->items[i].text);
    }
    return jinja_string(result);
}

/* ---- markup ---- */

static struct value string(struct run *r, const struct value *a)
{
    return a[0];
}

static struct value safe(struct run *r, const struct value *a)
{
    struct text *text = jinja_cut(r, a[0].text, 0, a[0].text->n);

    text->is_markup = true;
    return jinja_string(text);
}

static struct value escape(struct run *r, const struct value *a)
{
    static const char special[] = "&<>'\"";
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    const struct text *text = a[0].text;
    struct text *result = jinja_text(r, "", 0);

    if (text->is_markup)
        return a[0];
    for (size_t i = 0; i < text->n; i++) {
        const char *found = text->bytes[i] ? strchr(special, text->bytes[i]) : NULL;

        if (!found)
            jinja_add_part(r, result, text, i, i + 1);
        for (const char *at = found ? entities[found - special] : ""; *at; at++)
            jinja_add_char(r, result, (unsigned char)*at, text->marks[i]);
    }
    result->is_markup = true;
    return jinja_string(result);
}

static struct value format(struct run *r, const struct value *a)
{
    return jinja_string(
        jinja_percent_format(r, a[0].text, (struct value){.type = JINJA_TUPLE, .list = a[1].list}));
}

enum { FILTER = JINJA_FILTER | JINJA_STR, METHOD = JINJA_METHOD(JINJA_STRING) };

const struct builtin jinja_text_table[] = {
    {"upper", FILTER | METHOD, "", change_case, JINJA_UPPER},
    {"lower", FILTER | METHOD, "", change_case, JINJA_LOWER},
    {"capitalize", FILTER | METHOD, "", change_case, JINJA_CAPITALIZED},
    {"title", FILTER, "", change_case, JINJA_WORDS},
    {"title", METHOD, "", change_case, JINJA_TITLE},
    {"trim", FILTER, "| chars", strip, JINJA_BOTH},
    {"strip", METHOD, "| chars", strip, JINJA_BOTH},
    {"lstrip", METHOD, "| chars", strip, JINJA_LEFT},
    {"rstrip", METHOD, "| chars", strip, JINJA_RIGHT},
    {"find", METHOD, "sub$ | start end", find, JINJA_LEFT},
    {"rfind", METHOD, "sub$ | start end", find, JINJA_RIGHT},
    {"startswith", METHOD, "prefix | start end", has_affix, JINJA_LEFT},
    {"endswith", METHOD, "suffix | start end", has_affix, JINJA_RIGHT},
    {"replace", FILTER, "old~ new~ | count", replace, 0},
    {"replace", METHOD, "old$ new$ | count", replace, 0},
    {"split", METHOD, "| sep maxsplit", split, JINJA_LEFT},
    {"rsplit", METHOD, "| sep maxsplit", split, JINJA_RIGHT},
    {"splitlines", METHOD, "| keepends", splitlines, 0},
    {"join", METHOD, "iterable", join, 0},
    {"indent", JINJA_FILTER, "| width first", indent, 0},
    {"string", FILTER, "", string, 0},
    {"safe", FILTER, "", safe, 0},
    {"escape e", FILTER, "", escape, 0},
    {"format", FILTER, "*", format, 0},
    {"format", METHOD, "* **", jinja_method_format, 0},
    {"casefold center count encode expandtabs format_map index isalnum isalpha isascii isdecimal "
     "isdigit isidentifier islower isnumeric isprintable isspace istitle isupper ljust maketrans "
     "partition removeprefix removesuffix rindex rjust rpartition swapcase translate zfill",
     METHOD, NULL, NULL, 0},
    {NULL, 0, NULL, NULL, 0}};
