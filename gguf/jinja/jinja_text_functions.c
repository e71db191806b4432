/* Filters and methods of strings. */
#include "gguf/jinja/jinja_run.h"

#include <string.h>

static struct value change_case(struct run *r, const struct value *a)
{
    return jinja_string(jinja_change_case(r, a[0].text, (enum jinja_case)a[JINJA_VARIANT].integer));
}

/* The first letter of each word in upper case; words begin after white space and one of -({[<. */
static struct value title(struct run *r, const struct value *a)
{
    const struct text *text = a[0].text;
    struct text *result = jinja_text(r, "", 0);
    size_t start = 0;
    bool is_start = true;

    for (size_t at = 0, next; at < text->n; at = next) {
        uint32_t c;
        bool is_break;

        next = jinja_next_char(text, at, &c);
        is_break = jinja_is_space(c) || (c < 128 && strchr("-({[<", (int)c));
        if (is_start || is_break) {
            jinja_add_text(r, result,
                           jinja_change_case(r, jinja_cut(r, text, start, at), JINJA_LOWER));
            jinja_add_text(r, result,
                           jinja_change_case(r, jinja_cut(r, text, at, next), JINJA_UPPER));
            start = next;
        }
        is_start = is_break;
    }
    jinja_add_text(r, result,
                   jinja_change_case(r, jinja_cut(r, text, start, text->n), JINJA_LOWER));
    return jinja_string(result);
}

static struct value strip(struct run *r, const struct value *a)
{
    const bool has_set = a[1].type != JINJA_ABSENT && a[1].type != JINJA_NONE;

    return jinja_string(jinja_strip(r, a[0].text, has_set ? jinja_need_text(r, a[1]) : NULL,
                                    (int)a[JINJA_VARIANT].integer));
}

/* ---- search ---- */

static size_t search_last(struct run *r, const struct text *text, const struct text *part,
                          size_t end)
{
    for (size_t at = end - part->n + 1; part->n <= end && at > 0; at--) {
        jinja_charge(r, 1);
        if (memcmp(text->bytes + at - 1, part->bytes, part->n) == 0)
            return at - 1;
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
    const size_t at = a[JINJA_VARIANT].integer == JINJA_RIGHT
                          ? search_last(r, text, a[1].text, text->n)
                          : jinja_search(r, text, a[1].text, 0);
    const size_t before = (size_t)(text->bytes - a[0].text->bytes);

    return jinja_int(
        at == SIZE_MAX ? -1 : (int64_t)jinja_chars(jinja_cut(r, a[0].text, 0, before + at)));
}

/* Test whether the text starts or ends with a string, or with one of a tuple. */
static struct value has_affix(struct run *r, const struct value *a)
{
    const struct list one = {.items = (struct value *)&a[1], .count = 1},
                      *affixes = a[1].type == JINJA_TUPLE ? a[1].list : &one;
    const struct text *text = window(r, a);
    bool is_there = false;

    for (size_t i = 0; i < affixes->count && !is_there; i++) {
        const struct text *affix = jinja_need_text(r, affixes->items[i]);
        const size_t n = affix->n;

        is_there = n <= text->n &&
                   memcmp(text->bytes + (a[JINJA_VARIANT].integer == JINJA_RIGHT ? text->n - n : 0),
                          affix->bytes, n) == 0;
    }
    return jinja_bool(is_there);
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

/* Split at white space, as split() without a separator does. */
static void split_words(struct run *r, struct list *list, const struct text *text, int64_t n,
                        int side)
{
    const struct text *rest = jinja_strip(r, text, NULL, side);

    for (; rest->n && n != 0; n--) {
        size_t start = 0, end = 0;
        uint32_t c = 0;

        /* the first white space, or the end of the last one */
        for (size_t at = 0, next; at < rest->n; at = next) {
            next = jinja_next_char(rest, at, &c);
            if (side == JINJA_RIGHT && jinja_is_space(c))
                start = next;
            if (side == JINJA_LEFT && jinja_is_space(c))
                break;
            end = next;
        }
        jinja_charge(r, end / 64);
        add_part(r, list, rest, start, end);
        rest =
            side == JINJA_RIGHT ? jinja_cut(r, rest, 0, start) : jinja_cut(r, rest, end, rest->n);
        rest = jinja_strip(r, rest, NULL, side);
    }
    if (rest->n)
        add_part(r, list, rest, 0, rest->n);
}

static struct value split(struct run *r, const struct value *a)
{
    const bool is_last = a[JINJA_VARIANT].integer == JINJA_RIGHT;
    const struct text *text = a[0].text, *separator;
    struct list *list = jinja_new_list(r, 0), *reversed = list;
    int64_t n = jinja_need_int(r, a[2], -1);
    size_t start = 0, end = text->n, at;

    if (a[1].type == JINJA_ABSENT || a[1].type == JINJA_NONE) {
        split_words(r, list, text, n, (int)a[JINJA_VARIANT].integer);
    } else {
        separator = jinja_need_text(r, a[1]);
        if (separator->n == 0)
            jinja_fail(r, "empty separator");
        for (; n != 0; n--) {
            at = is_last ? search_last(r, text, separator, end)
                         : jinja_search(r, text, separator, start);
            if (at == SIZE_MAX)
                break;
            add_part(r, list, text, is_last ? at + separator->n : start, is_last ? end : at);
            *(is_last ? &end : &start) = is_last ? at : at + separator->n;
        }
        add_part(r, list, text, start, end);
    }
    if (is_last)
        reversed = jinja_slice(r, jinja_list(list),
                               (struct value[]){jinja_absent, jinja_absent, jinja_int(-1)})
                       .list;
    return jinja_list(reversed);
}

static struct value splitlines(struct run *r, const struct value *a)
{
    const struct text *text = a[0].text;
    struct list *list = jinja_new_list(r, 0);
    size_t start = 0;

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
    const struct text *newline = jinja_text(r, "\n", 1);
    const struct value text = jinja_binary(r, '~', a[0], jinja_string((struct text *)newline));
    const struct list *lines = splitlines(r, (struct value[]){text, jinja_absent}).list;
    struct text *result = jinja_text(r, "", 0), *spaces = jinja_text(r, "", 0);

    if (a[1].type == JINJA_STRING)
        spaces = a[1].text;
    else
        jinja_add_times(r, spaces, jinja_text(r, " ", 1), jinja_need_int(r, a[1], 4));
    for (size_t i = 0; i < lines->count; i++) {
        if (i > 0)
            jinja_add_text(r, result, newline);
        if (jinja_truth(a[i == 0 ? 2 : 3]) || (i > 0 && lines->items[i].text->n))
            jinja_add_text(r, result, spaces);
        jinja_add_text(r, result, lines->items[i].text);
    }
    return jinja_string(result);
}

/* ---- markup ---- */

static struct value string(struct run *r, const struct value *a)
{
    (void)r;
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

enum { FILTER = JINJA_FILTER | JINJA_STR, METHOD = JINJA_METHOD | JINJA_OF_TEXT };

const struct builtin jinja_text_table[] = {
    {"upper", FILTER | METHOD, "", change_case, JINJA_UPPER},
    {"lower", FILTER | METHOD, "", change_case, JINJA_LOWER},
    {"capitalize", FILTER | METHOD, "", change_case, JINJA_CAPITALIZED},
    {"title", FILTER, "", title, 0},
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
    {"indent", JINJA_FILTER, "| width first blank", indent, 0},
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
