/* Values as text: str() and repr() of Python, and JSON as json.dumps() writes it. */
#include "gguf/jinja/jinja_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unictype.h>

struct printer {
    struct run *r;
    struct text *out;
    bool json; /* or repr() */
    struct jinja_json_style style;
};

/* Write a number as repr() of a float does. */
static void add_float(const struct printer *p, double number)
{
    char digits[32];
    int exponent, n, precision = 0;

    if (!isfinite(number)) {
        snprintf(digits, sizeof digits, "%s%s", number < 0 ? "-" : "",
                 isnan(number) ? p->json ? "NaN" : "nan"
                 : p->json     ? "Infinity"
                               : "inf");
        jinja_add_string(p->r, p->out, digits);
        return;
    }
    do
        snprintf(digits, sizeof digits, "%.*e", precision, number);
    while (strtod(digits, NULL) != number && precision++ < 16);
    exponent = atoi(strchr(digits, 'e') + 1);
    n = precision - exponent; /* digits after the point */
    if (exponent < 16 && exponent >= -4)
        snprintf(digits, sizeof digits, "%.*f", n > 1 ? n : 1, number);
    jinja_add_string(p->r, p->out, digits);
}

/* Write a control or other character as \n, \xNN, \uNNNN or \UNNNNNNNN. */
static void add_escape(const struct printer *p, uint32_t character, char mark)
{
    static const char letters[] = "tnr\\\"'bf", controls[] = "\t\n\r\\\"'\b\f";
    const char *control = character && character < 128 ? strchr(controls, (int)character) : NULL;
    char text[16];

    if (control && (p->json || control - controls < 6))
        snprintf(text, sizeof text, "\\%c", letters[control - controls]);
    else if (p->json && character > 0xffff)
        snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xd7c0 + (character >> 10),
                 0xdc00 | (character & 0x3ff));
    else if (character > 0xffff)
        snprintf(text, sizeof text, "\\U%08x", character);
    else
        snprintf(text, sizeof text, p->json || character > 0xff ? "\\u%04x" : "\\x%02x", character);
    for (const char *at = text; *at; at++)
        jinja_add_char(p->r, p->out, (unsigned char)*at, mark);
}

static void add_quoted(const struct printer *p, const struct text *text)
{
    const bool has_single = memchr(text->bytes, '\'', text->n),
               has_double = memchr(text->bytes, '"', text->n);
    const unsigned char quote = p->json || (has_single && !has_double) ? '"' : '\'';
    size_t plain = 0, next;

    jinja_charge(p->r, text->n / 8);
    jinja_add_char(p->r, p->out, quote, 0);
    for (size_t at = 0; at < text->n; at = next) {
        uint32_t c;
        bool is_plain;

        next = jinja_next_char(text, at, &c);
        is_plain = p->json ? c >= 0x20 && !(p->style.is_ascii && c > 0x7e)
                           : c == ' ' || !uc_is_general_category_withtable(
                                             c, UC_CATEGORY_MASK_C | UC_CATEGORY_MASK_Z);
        if (is_plain && c != quote && c != '\\')
            continue;
        jinja_add_part(p->r, p->out, text, plain, at);
        add_escape(p, c, text->marks[at]);
        plain = next;
    }
    jinja_add_part(p->r, p->out, text, plain, text->n);
    jinja_add_char(p->r, p->out, quote, 0);
}

static void add_value(const struct printer *p, struct value value, int64_t level);

static void add_key(const struct printer *p, struct value key)
{
    const char *quote = p->json && key.type != JINJA_STRING ? "\"" : "";

    if (p->json && (key.type == JINJA_TUPLE || key.type == JINJA_UNDEFINED))
        jinja_fail(p->r, "keys must be str, int, float, bool or None, not %s",
                   jinja_type_name(key));
    jinja_add_string(p->r, p->out, quote);
    add_value(p, key, 0);
    jinja_add_string(p->r, p->out, quote);
}

static void add_line(const struct printer *p, int64_t level)
{
    if (p->style.indent) {
        jinja_add_string(p->r, p->out, "\n");
        jinja_add_times(p->r, p->out, p->style.indent, level);
    }
}

static const char *const brackets[][2] = {
    [JINJA_LIST] = {"[", "]"},
    [JINJA_TUPLE] = {"(", ")"},
    [JINJA_KEYS] = {"dict_keys([", "])"},
    [JINJA_VALUES] = {"dict_values([", "])"},
    [JINJA_ITEMS] = {"dict_items([", "])"},
    [JINJA_DICT] = {"{", "}"},
    [JINJA_NAMESPACE] = {"<Namespace {", "}>"},
};

static void add_items(const struct printer *p, struct value value, int64_t level)
{
    const bool is_dict = value.type == JINJA_DICT || value.type == JINJA_NAMESPACE;
    const enum jinja_type type = p->json && !is_dict ? JINJA_LIST : value.type;
    const struct list *items =
        is_dict ? jinja_view(p->r, value.dict, JINJA_ITEMS).list : value.list;

    if (is_dict && p->style.has_sorted_keys)
        items = jinja_sorted(p->r, items, jinja_absent, true, false);
    jinja_add_string(p->r, p->out, brackets[type][0]);
    for (size_t i = 0; i < items->count; i++) {
        const struct value item = items->items[i];

        if (i > 0)
            jinja_add_text(p->r, p->out, p->style.item_separator);
        add_line(p, level + 1);
        if (is_dict) {
            add_key(p, item.list->items[0]);
            jinja_add_text(p->r, p->out, p->style.key_separator);
        }
        add_value(p, is_dict ? item.list->items[1] : item, level + 1);
    }
    if (items->count)
        add_line(p, level);
    jinja_add_string(p->r, p->out, type == JINJA_TUPLE && items->count == 1 ? "," : "");
    jinja_add_string(p->r, p->out, brackets[type][1]);
}

static void add_value(const struct printer *p, struct value value, int64_t level)
{
    const bool is_markup = value.type == JINJA_STRING && value.text->is_markup && !p->json;
    const char *text = "";
    char digits[32];

    jinja_charge(p->r, 1);
    jinja_enter(p->r, JINJA_MAX_DEPTH);
    if (p->json &&
        (value.type == JINJA_UNDEFINED || (value.type > JINJA_TUPLE && value.type != JINJA_DICT)))
        jinja_fail(p->r, "Object of type %s is not JSON serializable", jinja_type_name(value));
    if (value.type == JINJA_UNDEFINED) {
        text = "Undefined";
    } else if (value.type == JINJA_NONE) {
        text = p->json ? "null" : "None";
    } else if (value.type == JINJA_BOOL) {
        text = value.integer ? p->json ? "true" : "True" : p->json ? "false" : "False";
    } else if (value.type == JINJA_INT) {
        snprintf(digits, sizeof digits, "%" PRId64, value.integer);
        text = digits;
    } else if (value.type == JINJA_BIG) {
        jinja_add_text(p->r, p->out, value.text);
    } else if (value.type == JINJA_FLOAT) {
        add_float(p, value.number);
    } else if (value.type == JINJA_STRING) {
        jinja_add_string(p->r, p->out, is_markup ? "Markup(" : "");
        add_quoted(p, value.text);
        text = is_markup ? ")" : "";
    } else if (value.type <= JINJA_NAMESPACE && brackets[value.type][0]) {
        add_items(p, value, level);
    } else {
        jinja_fail(p->r, "a value of type %s has no text", jinja_type_name(value));
    }
    jinja_add_string(p->r, p->out, text);
    p->r->depth--;
}

struct text *jinja_str(struct run *r, struct value value)
{
    if (value.type == JINJA_STRING)
        return value.text;
    return value.type == JINJA_UNDEFINED ? jinja_text(r, "", 0) : jinja_to_json(r, value, NULL);
}

struct text *jinja_to_json(struct run *r, struct value value, const struct jinja_json_style *style)
{
    static const struct text comma = {.bytes = (char *)", ", .marks = (char *)"\0", .n = 2},
                             colon = {.bytes = (char *)": ", .marks = (char *)"\0", .n = 2};
    static const struct jinja_json_style repr = {.item_separator = &comma, .key_separator = &colon};
    const struct printer printer = {r, jinja_text(r, "", 0), style, style ? *style : repr};

    add_value(&printer, value, 0);
    return printer.out;
}
