#include "gguf/support/json_values.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistr.h>

/* Digits of an integer that fits 32 bits. */
#define MAX_DIGITS 9

struct parser {
    char *at, *end;
    struct gguf_json *next; /* free room */
    unsigned depth, max_depth;
    const char *rule; /* that was broken, at `at` */
};

static bool fail(struct parser *p, const char *rule)
{
    if (!p->rule)
        p->rule = rule;
    return false;
}

static bool take(struct parser *p, const char *word)
{
    size_t n = 0;

    while (word[n] && p->at[n] == word[n])
        n++;
    p->at += word[n] ? 0 : n;
    return !word[n];
}

static void skip_space(struct parser *p)
{
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\r' || *p->at == '\n')
        p->at++;
}

/* Read the four digits of \uXXXX. */
static bool read_hex(struct parser *p, uint32_t *unit)
{
    char digits[5] = "";

    for (size_t i = 0; i < 4 && isxdigit((unsigned char)p->at[i]); i++)
        digits[i] = p->at[i];
    p->at += strlen(digits);
    *unit = (uint32_t)strtoul(digits, NULL, 16);
    return digits[3] || fail(p, "\\u needs four hexadecimal digits");
}

/* Read an escape after its backslash, and move *out past what it stands for. */
static bool read_escape(struct parser *p, char **out)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *letter = *p->at ? strchr(letters, *p->at) : NULL;
    uint32_t code, low = 0;
    char *second;

    if (letter) {
        *(*out)++ = meanings[letter - letters];
        p->at++;
        return true;
    }
    if (!take(p, "u"))
        return fail(p, "unknown escape in a string");
    if (!read_hex(p, &code))
        return false;
    second = p->at;
    if (code >= 0xd800 && code < 0xdc00 && take(p, "\\u") && !read_hex(p, &low))
        return false;
    if (low >= 0xdc00 && low < 0xe000)
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    else
        p->at = second;
    if (code >= 0xdc80 && code <= 0xdcff) {
        *(*out)++ = (char)(code - 0xdc00);
        return true;
    }
    *out += u8_uctomb((uint8_t *)*out, code >= 0xd800 && code < 0xe000 ? 0xfffd : code, 6);
    return true;
}

/* Read a string after its first quote. */
static bool read_string(struct parser *p, struct gguf_string *string)
{
    char *out = p->at;

    string->data = out;
    for (;;) {
        const char *end = p->at;
        size_t n;

        while ((end += strcspn(end, "\"\\")) < p->end && !*end) /* a NUL is text */
            end++;
        n = (size_t)(end - p->at);
        if (out < p->at)
            memmove(out, p->at, n);
        out += n;
        p->at += n;
        if (take(p, "\""))
            break;
        if (!take(p, "\\"))
            return fail(p, "the string has no end");
        if (!read_escape(p, &out))
            return false;
    }
    *out = '\0';
    string->length_bytes = (uint64_t)(out - string->data);
    return true;
}

static bool read_number(struct parser *p, struct gguf_json *value)
{
    const bool is_negative = *p->at == '-';
    const char *first = p->at + is_negative;
    char *end = p->at + is_negative;
    uint32_t number = 0;

    while (end - first < MAX_DIGITS && isdigit((unsigned char)*end))
        number = number * 10 + (uint32_t)(*end++ - '0');
    value->number = is_negative ? -(double)number : (double)number;
    if (strchr("+-0123456789.eE", *end)) /* as a NUL does, too */
        value->number = strtod(p->at, &end);
    value->text = (struct gguf_string){p->at, (uint64_t)(end - p->at)};
    if ((*first == '0' && first[1] && strchr("0123456789xX", first[1])) || end[-1] == '.')
        return fail(p, "wrong number");
    p->at = end;
    return true;
}

static bool read_value(struct parser *p, struct gguf_json *value);

/* Read the items of an array or object after its bracket. */
static bool read_items(struct parser *p, struct gguf_json *parent)
{
    const bool is_object = parent->kind == GGUF_JSON_OBJECT;
    const char *close = is_object ? "}" : "]";
    const struct gguf_json **link = &parent->child;

    skip_space(p);
    if (take(p, close))
        return true;
    do {
        struct gguf_json *item = p->next++;

        *link = item;
        link = &item->next;
        skip_space(p);
        if (is_object) {
            if (!take(p, "\""))
                return fail(p, "expected a key in quotes");
            if (!read_string(p, &item->key))
                return false;
            skip_space(p);
            if (!take(p, ":"))
                return fail(p, "expected ':' after a key");
        }
        if (!read_value(p, item))
            return false;
    } while (take(p, ","));
    return take(p, close) || fail(p, is_object ? "expected ',' or '}'" : "expected ',' or ']'");
}

/* Read null, true, false, NaN or an infinity. */
static bool read_word(struct parser *p, struct gguf_json *value)
{
    static const struct {
        const char *word;
        enum gguf_json_kind kind;
        double number;
    } words[] = {{"null", GGUF_JSON_NULL, 0},
                 {"true", GGUF_JSON_TRUE, 0},
                 {"false", GGUF_JSON_FALSE, 0},
                 {"NaN", GGUF_JSON_NUMBER, NAN},
                 {"Infinity", GGUF_JSON_NUMBER, INFINITY},
                 {"-Infinity", GGUF_JSON_NUMBER, -INFINITY}};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (take(p, words[i].word)) {
            value->kind = words[i].kind;
            value->number = words[i].number;
            return true;
        }
    }
    return fail(p, "expected a value");
}

/* Read a value and the white space around it. */
static bool read_value(struct parser *p, struct gguf_json *value)
{
    bool is_right;

    if (p->depth == p->max_depth)
        return fail(p, "nested too deep");
    p->depth++;
    skip_space(p);
    switch (*p->at) {
    case '{':
    case '[':
        value->kind = *p->at++ == '{' ? GGUF_JSON_OBJECT : GGUF_JSON_ARRAY;
        is_right = read_items(p, value);
        break;
    case '"':
        p->at++;
        value->kind = GGUF_JSON_STRING;
        is_right = read_string(p, &value->text);
        break;
    default:
        value->kind = GGUF_JSON_NUMBER;
        is_right = isdigit((unsigned char)p->at[*p->at == '-']) ? read_number(p, value)
                                                                : read_word(p, value);
    }
    skip_space(p);
    p->depth--;
    return is_right;
}

size_t gguf_json_room(const char *text, size_t n_bytes)
{
    const char *at = text, *end = text + n_bytes;
    size_t room = 1;

    for (; (at += strcspn(at, ",[{")) < end; at++)
        room += *at != '\0';
    return room;
}

const char *gguf_json_parse(char *text, size_t n_bytes, unsigned max_depth,
                            struct gguf_json *values, size_t *offset)
{
    struct parser p = {
        .at = text, .end = text + n_bytes, .next = values + 1, .max_depth = max_depth};

    if (read_value(&p, values) && p.at < p.end)
        fail(&p, "more text after the value");
    *offset = (size_t)(p.at - text);
    return p.rule;
}

const struct gguf_json *gguf_json_member(const struct gguf_json *object, const char *key)
{
    const struct gguf_json *member =
        object && object->kind == GGUF_JSON_OBJECT ? object->child : NULL;

    while (member && !gguf_string_equals(member->key, key))
        member = member->next;
    return member;
}
