/*
 * Reads JSON values as Python's json module does: keys in their order, integers and floats apart,
 * NaN and Infinity. Lone surrogates and bytes that are not UTF-8 become U+FFFD.
 */
#include "gguf/jinja/jinja_run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    struct run *r;
    const char *what, *start, *at, *end;
};

static _Noreturn void fail_at(const struct reader *reader, const char *rule)
{
    jinja_fail(reader->r, "%s: byte %zu: not JSON: %s", reader->what,
               (size_t)(reader->at - reader->start), rule);
}

static bool take(struct reader *reader, const char *word)
{
    const size_t n = strlen(word);

    if ((size_t)(reader->end - reader->at) < n || memcmp(reader->at, word, n) != 0)
        return false;
    reader->at += n;
    return true;
}

static void skip_space(struct reader *reader)
{
    while (take(reader, " ") || take(reader, "\t") || take(reader, "\r") || take(reader, "\n"))
        continue;
}

/* Read the four digits of \uXXXX. */
static uint32_t read_hex(struct reader *reader)
{
    char digits[5] = "";
    size_t n;

    for (size_t i = 0; i < 4 && reader->at + i < reader->end; i++)
        digits[i] = reader->at[i];
    n = strspn(digits, "0123456789abcdefABCDEF");
    reader->at += n;
    if (n < 4)
        fail_at(reader, "\\u needs four hexadecimal digits");
    return (uint32_t)strtoul(digits, NULL, 16);
}

static void read_escape(struct reader *reader, struct text *text)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *second,
        *letter = reader->at < reader->end && *reader->at ? strchr(letters, *reader->at) : NULL;
    uint32_t code, low = 0;

    if (letter) {
        jinja_add(reader->r, text, &meanings[letter - letters], 1);
        reader->at++;
        return;
    }
    if (!take(reader, "u"))
        fail_at(reader, "unknown escape in a string");
    code = read_hex(reader);
    second = reader->at;
    if (code >= 0xd800 && code < 0xdc00 && take(reader, "\\u"))
        low = read_hex(reader);
    if (low >= 0xdc00 && low < 0xe000)
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    else
        reader->at = second;
    jinja_add_char(reader->r, text, code, 0);
}

static struct value read_string(struct reader *reader)
{
    struct text *text = jinja_text(reader->r, "", 0);

    while (!take(reader, "\"")) {
        const char *from = reader->at;

        while (reader->at < reader->end && *reader->at != '"' && *reader->at != '\\')
            reader->at++;
        if (reader->at == reader->end)
            fail_at(reader, "the string has no end");
        jinja_add_clean(reader->r, text, from, (size_t)(reader->at - from));
        if (take(reader, "\\"))
            read_escape(reader, text);
    }
    return jinja_string(text);
}

static struct value read_number(struct reader *reader)
{
    char digits[400], *end;
    struct value value;
    size_t n = 0;

    for (; n < sizeof digits - 1 && n < (size_t)(reader->end - reader->at); n++) {
        digits[n] = reader->at[n];
        if (!digits[n] || !strchr("+-0123456789.eE", digits[n]))
            break;
    }
    if (n == 0 || n == sizeof digits - 1)
        fail_at(reader, n ? "a number is too long" : "expected a value");
    digits[n] = '\0';
    errno = 0;
    value = jinja_float(strtod(digits, &end));
    if (!strpbrk(digits, ".eE")) {
        errno = 0;
        value = jinja_int(strtoll(digits, &end, 10));
    }
    if (*end || digits[0] == '+')
        fail_at(reader, "wrong number");
    if (errno == ERANGE && value.type == JINJA_INT)
        value = (struct value){.type = JINJA_BIG, .text = jinja_text(reader->r, digits, n)};
    reader->at += n;
    return value;
}

static struct value read_value(struct reader *reader);

/* Read the items of a list or a dict after its bracket. */
static struct value read_items(struct reader *reader, bool is_dict)
{
    const struct value items =
        is_dict ? jinja_dict(jinja_new_dict(reader->r)) : jinja_list(jinja_new_list(reader->r, 0));
    const char *close = is_dict ? "}" : "]";

    skip_space(reader);
    if (take(reader, close))
        return items;
    do {
        struct value key;

        skip_space(reader);
        if (!is_dict) {
            jinja_push(reader->r, items.list, read_value(reader));
            continue;
        }
        if (!take(reader, "\""))
            fail_at(reader, "expected a key in quotes");
        key = read_string(reader);
        skip_space(reader);
        if (!take(reader, ":"))
            fail_at(reader, "expected ':' after a key");
        jinja_set(reader->r, items.dict, key, read_value(reader));
    } while (take(reader, ","));
    if (!take(reader, close))
        fail_at(reader, is_dict ? "expected ',' or '}'" : "expected ',' or ']'");
    return items;
}

/* Read a value and the white space around it. */
static struct value read_value(struct reader *reader)
{
    static const struct {
        const char *word;
        struct value value;
    } words[] = {
        {"null", {.type = JINJA_NONE}},
        {"true", {.type = JINJA_BOOL, .integer = 1}},
        {"false", {.type = JINJA_BOOL}},
        {"NaN", {.type = JINJA_FLOAT, .number = NAN}},
        {"Infinity", {.type = JINJA_FLOAT, .number = INFINITY}},
        {"-Infinity", {.type = JINJA_FLOAT, .number = -INFINITY}},
    };
    struct value value = jinja_absent;

    jinja_enter(reader->r, JINJA_MAX_DEPTH);
    jinja_charge(reader->r, 1);
    skip_space(reader);
    for (size_t i = 0; i < JINJA_COUNT(words) && value.type == JINJA_ABSENT; i++)
        if (take(reader, words[i].word))
            value = words[i].value;
    if (value.type == JINJA_ABSENT)
        value = take(reader, "{")    ? read_items(reader, true)
                : take(reader, "[")  ? read_items(reader, false)
                : take(reader, "\"") ? read_string(reader)
                                     : read_number(reader);
    skip_space(reader);
    reader->r->depth--;
    return value;
}

struct value jinja_read_json(struct run *r, const char *what, const char *bytes, size_t n_bytes)
{
    struct reader reader = {r, what, bytes, bytes, bytes + n_bytes};
    struct value value = read_value(&reader);

    if (reader.at < reader.end)
        fail_at(&reader, "more text after the value");
    return value;
}
