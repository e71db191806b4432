/* Methods of strings, lists and dicts. A row without a function is a method that the sandbox
 * forbids. */
#include "gguf/jinja/jinja_run.h"

#include <string.h>

/* ---- upper and lower case ---- */

static struct value change_case(struct run *run, const struct value *a)
{
    return jinja_string(jinja_text_case(run, a[0].text, (enum jinja_case)a[JINJA_VARIANT].integer));
}

/* ---- white space ---- */

enum { LEFT = 1, RIGHT = 2, BOTH = 3 };

static struct value strip(struct run *run, const struct value *a)
{
    const bool has_set = a[1].type != JINJA_ABSENT && a[1].type != JINJA_NONE;
    const int sides = (int)a[JINJA_VARIANT].integer;

    return jinja_string(jinja_text_strip(
        run, a[0].text, has_set ? jinja_need_text(run, a[1]) : NULL, sides & LEFT, sides & RIGHT));
}

/* ---- search ---- */

/* Return the part of the text between the characters a[2] and a[3], and the number of characters
 * before. */
static struct text *window(struct run *run, const struct value *a, int64_t *before)
{
    const struct value part = jinja_slice(run, a[0], a[2], a[3], jinja_absent());
    const struct text prefix = {.bytes = a[0].text->bytes,
                                .n_bytes = (size_t)(part.text->bytes - a[0].text->bytes)};

    *before = (int64_t)jinja_text_chars(jinja_text_cut(run, &prefix, 0, prefix.n_bytes));
    return part.text;
}

static size_t find_last(struct run *run, const struct text *text, const struct text *part,
                        size_t end)
{
    for (size_t at = end - part->n_bytes; part->n_bytes <= end; at--) {
        jinja_charge(run, 1);
        if (memcmp(text->bytes + at, part->bytes, part->n_bytes) == 0)
            return at;
        if (at == 0)
            break;
    }
    return SIZE_MAX;
}

enum { FROM_LEFT, FROM_RIGHT };

static struct value find(struct run *run, const struct value *a)
{
    const struct text *part = jinja_need_text(run, a[1]);
    int64_t before;
    struct text *text = window(run, a, &before);
    const size_t at = a[JINJA_VARIANT].integer == FROM_RIGHT
                          ? find_last(run, text, part, text->n_bytes)
                          : jinja_text_find(run, text, part, 0);

    return jinja_int(
        at == SIZE_MAX ? -1 : before + (int64_t)jinja_text_chars(jinja_text_cut(run, text, 0, at)));
}

/* Test whether the text starts or ends with a string, or with one of a tuple. */
static struct value has_affix(struct run *run, const struct value *a)
{
    const struct list one = {.items = (struct value *)&a[1], .count = 1},
                      *affixes = a[1].type == JINJA_TUPLE ? a[1].list : &one;
    int64_t before;
    const struct text *text = window(run, a, &before);

    for (size_t i = 0; i < affixes->count; i++) {
        const struct text *affix = jinja_need_text(run, affixes->items[i]);
        const size_t n = affix->n_bytes;

        if (n <= text->n_bytes &&
            memcmp(text->bytes + (a[JINJA_VARIANT].integer == RIGHT ? text->n_bytes - n : 0),
                   affix->bytes, n) == 0)
            return jinja_bool(true);
    }
    return jinja_bool(false);
}

static struct value replace(struct run *run, const struct value *a)
{
    const struct text *text = a[0].text, *old = jinja_need_text(run, a[1]),
                      *new = jinja_need_text(run, a[2]);
    int64_t n = jinja_need_int(run, a[3], -1);
    struct builder *builder = jinja_builder(run);
    size_t done = 0, at = 0;
    uint32_t character;

    for (; n != 0; n--) {
        const size_t from = at;

        if (from > text->n_bytes || (at = jinja_text_find(run, text, old, from)) == SIZE_MAX)
            break;
        jinja_add(run, builder, text->bytes + done, at - done,
                  text->marks ? text->marks + done : NULL);
        jinja_add_text(run, builder, new);
        done = at + old->n_bytes;
        at = old->n_bytes         ? done
             : at < text->n_bytes ? jinja_next_char(text, at, &character)
                                  : SIZE_MAX;
    }
    jinja_add(run, builder, text->bytes + done, text->n_bytes - done,
              text->marks ? text->marks + done : NULL);
    return jinja_string(jinja_built(run, builder));
}

/* ---- parts ---- */

static void reverse_items(struct list *list)
{
    for (size_t i = 0; i < list->count / 2; i++) {
        const struct value item = list->items[i];

        list->items[i] = list->items[list->count - 1 - i];
        list->items[list->count - 1 - i] = item;
    }
}

static void add_part(struct run *run, struct list *list, const struct text *text, size_t start,
                     size_t end)
{
    jinja_charge(run, 1);
    jinja_list_add(run, list, jinja_string(jinja_text_cut(run, text, start, end)));
}

/* Split at white space, as split() without a separator does. */
static void split_words(struct run *run, struct list *list, const struct text *text, int64_t n,
                        bool is_last)
{
    const struct text *rest = jinja_text_strip(run, text, NULL, !is_last, is_last);

    for (; rest->n_bytes && n != 0; n--) {
        size_t at = is_last ? rest->n_bytes : 0, end, next;
        uint32_t character = 0;

        while (is_last ? at > 0 : at < rest->n_bytes) {
            for (next = is_last ? at - 1 : at;
                 is_last && ((unsigned char)rest->bytes[next] & 0xc0) == 0x80;)
                next--;
            end = jinja_next_char(rest, next, &character);
            if (jinja_is_space(character))
                break;
            at = is_last ? next : end;
        }
        if (is_last)
            add_part(run, list, rest, at, rest->n_bytes);
        else
            add_part(run, list, rest, 0, at);
        rest = is_last ? jinja_text_cut(run, rest, 0, at)
                       : jinja_text_cut(run, rest, at, rest->n_bytes);
        rest = jinja_text_strip(run, rest, NULL, !is_last, is_last);
    }
    if (rest->n_bytes)
        add_part(run, list, rest, 0, rest->n_bytes);
}

static struct value split(struct run *run, const struct value *a)
{
    const bool is_last = a[JINJA_VARIANT].integer == FROM_RIGHT;
    const struct text *text = a[0].text, *separator;
    int64_t n = jinja_need_int(run, a[2], -1);
    struct list *list = jinja_list_make(run, 0);
    size_t start = 0, end = text->n_bytes, at;

    if (a[1].type == JINJA_ABSENT || a[1].type == JINJA_NONE) {
        split_words(run, list, text, n, is_last);
    } else {
        separator = jinja_need_text(run, a[1]);
        if (separator->n_bytes == 0)
            jinja_fail(run, "empty separator");
        for (; n != 0; n--) {
            at = is_last ? find_last(run, text, separator, end)
                         : jinja_text_find(run, text, separator, start);
            if (at == SIZE_MAX)
                break;
            add_part(run, list, text, is_last ? at + separator->n_bytes : start,
                     is_last ? end : at);
            *(is_last ? &end : &start) = is_last ? at : at + separator->n_bytes;
        }
        add_part(run, list, text, start, end);
    }
    if (is_last)
        reverse_items(list);
    return jinja_list(list);
}

static struct value splitlines(struct run *run, const struct value *a)
{
    const struct text *text = a[0].text;
    struct list *list = jinja_list_make(run, 0);
    size_t start = 0, next;

    for (size_t at = 0; at < text->n_bytes; at = next) {
        uint32_t c;

        next = jinja_next_char(text, at, &c);
        if (!(c >= 10 && c <= 13) && !(c >= 0x1c && c <= 0x1e) && c != 0x85 && c != 0x2028 &&
            c != 0x2029)
            continue;
        next += c == '\r' && next < text->n_bytes && text->bytes[next] == '\n';
        add_part(run, list, text, start, jinja_truth(a[1]) ? next : at);
        start = next;
    }
    if (start < text->n_bytes)
        add_part(run, list, text, start, text->n_bytes);
    return jinja_list(list);
}

static struct value join(struct run *run, const struct value *a)
{
    const struct list *items = jinja_items(run, a[1]);
    struct builder *builder = jinja_builder(run);

    for (size_t i = 0; i < items->count; i++) {
        if (i > 0)
            jinja_add_text(run, builder, a[0].text);
        jinja_add_text(run, builder, jinja_need_text(run, items->items[i]));
    }
    return jinja_string(jinja_built(run, builder));
}

const struct builtin jinja_text_methods[] = {{"capitalize", "", change_case, JINJA_CAPITALIZED},
                                             {"endswith", "suffix | start end", has_affix, RIGHT},
                                             {"find", "sub | start end", find, FROM_LEFT},
                                             {"format", "* **", jinja_method_format, 0},
                                             {"join", "iterable", join, 0},
                                             {"lower", "", change_case, JINJA_LOWER},
                                             {"lstrip", "| chars", strip, LEFT},
                                             {"replace", "old new | count", replace, 0},
                                             {"rfind", "sub | start end", find, FROM_RIGHT},
                                             {"rsplit", "| sep maxsplit", split, FROM_RIGHT},
                                             {"rstrip", "| chars", strip, RIGHT},
                                             {"split", "| sep maxsplit", split, FROM_LEFT},
                                             {"splitlines", "| keepends", splitlines, 0},
                                             {"startswith", "prefix | start end", has_affix, LEFT},
                                             {"strip", "| chars", strip, BOTH},
                                             {"title", "", change_case, JINJA_TITLE},
                                             {"upper", "", change_case, JINJA_UPPER},
                                             {NULL, NULL, NULL, 0}};

/* ---- lists and dicts ---- */

const struct builtin jinja_list_methods[] = {
    {"append", "", NULL, 0},  {"clear", "", NULL, 0}, {"extend", "", NULL, 0},
    {"insert", "", NULL, 0},  {"pop", "", NULL, 0},   {"remove", "", NULL, 0},
    {"reverse", "", NULL, 0}, {"sort", "", NULL, 0},  {NULL, NULL, NULL, 0}};

static struct value get(struct run *run, const struct value *a)
{
    const struct value *found = jinja_dict_find(run, a[0].dict, a[1]);

    return found ? *found : a[2].type == JINJA_ABSENT ? jinja_none() : a[2];
}

static struct value view(struct run *run, const struct value *a)
{
    static const char *const kinds[] = {"dict_keys", "dict_values", "dict_items"};

    return jinja_dict_view(run, a[0].dict, kinds[a[JINJA_VARIANT].integer]);
}

const struct builtin jinja_dict_methods[] = {
    {"get", "key | default", get, 0}, {"keys", "", view, 0},
    {"values", "", view, 1},          {"items", "", view, 2},
    {"clear", "", NULL, 0},           {"pop", "", NULL, 0},
    {"popitem", "", NULL, 0},         {"setdefault", "", NULL, 0},
    {"update", "", NULL, 0},          {NULL, NULL, NULL, 0}};
