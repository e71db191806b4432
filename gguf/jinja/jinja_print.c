/* Values as text: str() and repr() of Python, and JSON as json.dumps() writes it. */
#include "gguf/jinja/jinja_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unictype.h>

void jinja_float_text(double number, char text[32])
{
    char digits[32], *end;
    int exponent, n;

    if (!isfinite(number)) {
        snprintf(text, 32, "%s", isnan(number) ? "nan" : number < 0 ? "-inf" : "inf");
        return;
    }
    for (int precision = 0; precision < 17; precision++) {
        snprintf(digits, sizeof digits, "%.*e", precision, number);
        if (strtod(digits, &end) == number)
            break;
    }
    exponent = atoi(strchr(digits, 'e') + 1);
    n = (int)strcspn(digits + (number < 0 || signbit(number)), "e") - 1;
    n = n > 0 ? n : 1; /* significant digits */
    if (exponent >= 16 || exponent < -4)
        snprintf(text, 32, "%s", digits);
    else
        snprintf(text, 32, "%.*f", n - 1 - exponent > 1 ? n - 1 - exponent : 1, number);
}

/* Write a control or other character as \n, \xNN, \uNNNN or \UNNNNNNNN. */
static void add_escape(struct run *run, struct builder *builder, uint32_t character,
                       unsigned char mark, bool is_json)
{
    static const char letters[] = "tnrbf\\\"'", controls[] = "\t\n\r\b\f\\\"'";
    const char *control = character && character < 128 ? strchr(controls, (int)character) : NULL;
    char text[16];

    if (control && (is_json || character != '\b') && (is_json || character != '\f'))
        snprintf(text, sizeof text, "\\%c", letters[control - controls]);
    else if (is_json && character > 0xffff)
        snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xd7c0 + (character >> 10),
                 0xdc00 | (character & 0x3ff));
    else
        snprintf(text, sizeof text,
                 is_json || character > 0xff ? character > 0xffff ? "\\U%08x" : "\\u%04x"
                                             : "\\x%02x",
                 character);
    for (const char *at = text; *at; at++)
        jinja_add_char(run, builder, (unsigned char)*at, mark);
}

static bool is_printable(uint32_t character)
{
    return character == ' ' ||
           !uc_is_general_category_withtable(character, UC_CATEGORY_MASK_C | UC_CATEGORY_MASK_Z);
}

static void add_quoted(struct run *run, struct builder *builder, const struct text *text,
                       const struct jinja_json_style *json)
{
    const bool has_single = memchr(text->bytes, '\'', text->n_bytes),
               has_double = memchr(text->bytes, '"', text->n_bytes);
    const unsigned char quote = json || (has_single && !has_double) ? '"' : '\'';
    size_t plain = 0, next;

    jinja_charge(run, text->n_bytes / 8);
    jinja_add_char(run, builder, quote, 0);
    for (size_t at = 0; at < text->n_bytes; at = next) {
        uint32_t character;
        bool is_plain;

        next = jinja_next_char(text, at, &character);
        is_plain = json ? character >= 0x20 && !(json->is_ascii && character > 0x7e)
                        : is_printable(character);
        if (is_plain && character != quote && character != '\\')
            continue;
        jinja_add(run, builder, text->bytes + plain, at - plain,
                  text->marks ? text->marks + plain : NULL);
        add_escape(run, builder, character, text->marks ? text->marks[at] : 0, json);
        plain = next;
    }
    jinja_add(run, builder, text->bytes + plain, text->n_bytes - plain,
              text->marks ? text->marks + plain : NULL);
    jinja_add_char(run, builder, quote, 0);
}

static void add_value(struct run *run, struct builder *builder, struct value value,
                      const struct jinja_json_style *json, int64_t level);

static void add_key(struct run *run, struct builder *builder, struct value key,
                    const struct jinja_json_style *json)
{
    const bool is_quoted = !json || key.type == JINJA_STRING;

    if (json && (key.type == JINJA_TUPLE || key.type == JINJA_UNDEFINED))
        jinja_fail(run, "keys must be str, int, float, bool or None, not %s", jinja_type_name(key));
    jinja_add_string(run, builder, is_quoted ? "" : "\"");
    add_value(run, builder, key, json, 0);
    jinja_add_string(run, builder, is_quoted ? "" : "\"");
}

static void add_line(struct run *run, struct builder *builder, const struct jinja_json_style *json,
                     int64_t level)
{
    if (!json || !json->indent)
        return;
    jinja_add_string(run, builder, "\n");
    jinja_add_times(run, builder, json->indent, level);
}

static void add_items(struct run *run, struct builder *builder, struct value value,
                      const struct jinja_json_style *json, int64_t level)
{
    const bool is_dict = value.type == JINJA_DICT || value.type == JINJA_NAMESPACE,
               is_tuple = value.type == JINJA_TUPLE && !json;
    const struct list *items =
        is_dict ? jinja_dict_view(run, value.dict, "dict_items").list : value.list;

    if (is_dict && json && json->has_sorted_keys)
        items = jinja_sorted(run, items, jinja_absent(), true, false);
    jinja_add_string(run, builder, is_dict ? "{" : is_tuple ? "(" : "[");
    for (size_t i = 0; i < items->count; i++) {
        const struct value *pair = is_dict ? items->items[i].list->items : NULL;

        if (i > 0 && json)
            jinja_add_text(run, builder, json->item_separator);
        else if (i > 0)
            jinja_add_string(run, builder, ", ");
        add_line(run, builder, json, level + 1);
        if (pair) {
            add_key(run, builder, pair[0], json);
            if (json)
                jinja_add_text(run, builder, json->key_separator);
            else
                jinja_add_string(run, builder, ": ");
        }
        add_value(run, builder, pair ? pair[1] : items->items[i], json, level + 1);
    }
    if (items->count)
        add_line(run, builder, json, level);
    jinja_add_string(run, builder,
                     is_dict             ? "}"
                     : !is_tuple         ? "]"
                     : items->count == 1 ? ",)"
                                         : ")");
}

/* Write a value as JSON, or as repr() does if `json` is NULL. */
static void add_value(struct run *run, struct builder *builder, struct value value,
                      const struct jinja_json_style *json, int64_t level)
{
    const char *end = "";
    char text[64] = "";

    jinja_charge(run, 1);
    jinja_enter(run, JINJA_MAX_DEPTH);
    if (json && (value.type == JINJA_UNDEFINED || value.type == JINJA_VIEW ||
                 value.type == JINJA_NAMESPACE || value.type >= JINJA_GENERATOR ||
                 value.type == JINJA_RANGE))
        jinja_fail(run, "Object of type %s is not JSON serializable", jinja_type_name(value));
    switch (value.type) {
    case JINJA_NONE:
        jinja_add_string(run, builder, json ? "null" : "None");
        break;
    case JINJA_UNDEFINED:
        jinja_add_string(run, builder, "Undefined");
        break;
    case JINJA_BOOL:
        jinja_add_string(run, builder,
                         json            ? value.integer ? "true" : "false"
                         : value.integer ? "True"
                                         : "False");
        break;
    case JINJA_INT:
        snprintf(text, sizeof text, "%" PRId64, value.integer);
        break;
    case JINJA_BIG:
        jinja_add_text(run, builder, value.text);
        break;
    case JINJA_FLOAT:
        jinja_float_text(value.number, text);
        if (json && !isfinite(value.number))
            snprintf(text, sizeof text, "%s",
                     isnan(value.number) ? "NaN"
                     : value.number < 0  ? "-Infinity"
                                         : "Infinity");
        break;
    case JINJA_STRING:
        jinja_add_string(run, builder, value.text->is_markup && !json ? "Markup(" : "");
        add_quoted(run, builder, value.text, json);
        end = value.text->is_markup && !json ? ")" : "";
        break;
    case JINJA_NAMESPACE:
    case JINJA_VIEW:
        jinja_add_string(run, builder, value.type == JINJA_VIEW ? value.list->kind : "<Namespace");
        end = value.type == JINJA_VIEW ? ")" : ">";
        jinja_add_string(run, builder, value.type == JINJA_VIEW ? "(" : " "); /* fall through */
    case JINJA_LIST:
    case JINJA_TUPLE:
    case JINJA_DICT:
        add_items(run, builder, value, json, level);
        break;
    default:
        jinja_fail(run, "a value of type %s has no text", jinja_type_name(value));
    }
    jinja_add_string(run, builder, text);
    jinja_add_string(run, builder, end);
    jinja_leave(run);
}

struct text *jinja_repr(struct run *run, struct value value)
{
    return jinja_to_json(run, value, NULL);
}

struct text *jinja_str(struct run *run, struct value value)
{
    if (value.type == JINJA_STRING)
        return value.text;
    return value.type == JINJA_UNDEFINED ? jinja_text_make(run, "", 0) : jinja_repr(run, value);
}

struct text *jinja_to_json(struct run *run, struct value value,
                           const struct jinja_json_style *style)
{
    struct builder *builder = jinja_builder(run);

    add_value(run, builder, value, style, 0);
    return jinja_built(run, builder);
}
