/*
 * Reads JSON values as Python's json module does: keys in their order, integers and floats apart,
 * NaN and Infinity. Lone surrogates and bytes that are not UTF-8 become U+FFFD.
 */
#include "gguf/jinja/jinja_values.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    struct run *run;
    const char *what, *start, *at, *end;
};

static _Noreturn void fail_at(const struct reader *reader, const char *rule)
{
    jinja_fail(reader->run, "%s: byte %zu: not JSON: %s", reader->what,
               (size_t)(reader->at - reader->start), rule);
}

static void skip_space(struct reader *reader)
{
    while (reader->at < reader->end && strchr(" \t\r\n", *reader->at) && *reader->at)
        reader->at++;
}

static bool take(struct reader *reader, const char *word)
{
    const size_t n = strlen(word);

    if ((size_t)(reader->end - reader->at) < n || memcmp(reader->at, word, n) != 0)
        return false;
    reader->at += n;
    return true;
}

/* Read the four digits of \uXXXX. */
static uint32_t read_hex(struct reader *reader)
{
    uint32_t code = 0;

    for (int i = 0; i < 4; i++, reader->at++) {
        const char digit = reader->at < reader->end ? *reader->at : '\0';

        if (!isxdigit((unsigned char)digit))
            fail_at(reader, "\\u needs four hexadecimal digits");
        code = code << 4 | (uint32_t)(digit <= '9' ? digit - '0' : (digit | 32) - 'a' + 10);
    }
    return code;
}

static void read_escape(struct reader *reader, struct builder *builder)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *letter;
    uint32_t code;

    if (take(reader, "u")) {
        code = read_hex(reader);
        if (code >= 0xd800 && code < 0xdc00 && reader->end - reader->at > 1 &&
            memcmp(reader->at, "\\u", 2) == 0) {
            const char *second = reader->at;
            uint32_t low;

            reader->at += 2;
            low = read_hex(reader);
            if (low >= 0xdc00 && low < 0xe000)
                code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            else
                reader->at = second;
        }
    } else {
        letter = reader->at < reader->end && *reader->at ? strchr(letters, *reader->at) : NULL;
        if (letter)
            code = (unsigned char)meanings[letter - letters];
        else
            fail_at(reader, "unknown escape in a string");
        reader->at++;
    }
    jinja_add_char(reader->run, builder, code, 0);
}

static struct value read_string(struct reader *reader)
{
    struct builder *builder = jinja_builder(reader->run);

    while (!take(reader, "\"")) {
        const char *from = reader->at;
        const struct text *part;

        while (reader->at < reader->end && *reader->at != '"' && *reader->at != '\\')
            reader->at++;
        if (reader->at == reader->end)
            fail_at(reader, "the string has no end");
        part = jinja_text_clean(reader->run, from, (size_t)(reader->at - from));
        jinja_add_text(reader->run, builder, part);
        if (take(reader, "\\"))
            read_escape(reader, builder);
    }
    return jinja_string(jinja_built(reader->run, builder));
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
    if (strpbrk(digits, ".eE"))
        value = jinja_float(strtod(digits, &end));
    else
        value = jinja_int(strtoll(digits, &end, 10));
    if (*end || digits[0] == '+')
        fail_at(reader, "wrong number");
    if (errno == ERANGE && value.type == JINJA_INT)
        value = (struct value){.type = JINJA_BIG, .text = jinja_text_clean(reader->run, digits, n)};
    reader->at += n;
    return value;
}

static struct value read_value(struct reader *reader);

static struct value read_items(struct reader *reader, bool is_dict)
{
    struct value items =
        is_dict ? (struct value){.type = JINJA_DICT, .dict = jinja_dict_make(reader->run)}
                : jinja_list(jinja_list_make(reader->run, 0));
    const char *close = is_dict ? "}" : "]";

    skip_space(reader);
    if (take(reader, close))
        return items;
    do {
        skip_space(reader);
        if (is_dict) {
            struct value key;

            if (!take(reader, "\""))
                fail_at(reader, "expected a key in quotes");
            key = read_string(reader);
            skip_space(reader);
            if (!take(reader, ":"))
                fail_at(reader, "expected ':' after a key");
            jinja_dict_set(reader->run, items.dict, key, read_value(reader));
        } else {
            jinja_list_add(reader->run, items.list, read_value(reader));
        }
        skip_space(reader);
    } while (take(reader, ","));
    if (!take(reader, close))
        fail_at(reader, is_dict ? "expected ',' or '}'" : "expected ',' or ']'");
    return items;
}

static struct value read_value(struct reader *reader)
{
    struct value value;

    jinja_enter(reader->run, JINJA_MAX_DEPTH);
    jinja_charge(reader->run, 1);
    skip_space(reader);
    if (take(reader, "{"))
        value = read_items(reader, true);
    else if (take(reader, "["))
        value = read_items(reader, false);
    else if (take(reader, "\""))
        value = read_string(reader);
    else if (take(reader, "null"))
        value = jinja_none();
    else if (take(reader, "true"))
        value = jinja_bool(true);
    else if (take(reader, "false"))
        value = jinja_bool(false);
    else if (take(reader, "NaN"))
        value = jinja_float(NAN);
    else if (take(reader, "Infinity"))
        value = jinja_float(INFINITY);
    else if (take(reader, "-Infinity"))
        value = jinja_float(-INFINITY);
    else
        value = read_number(reader);
    jinja_leave(reader->run);
    return value;
}

struct value jinja_read_json(struct run *run, const char *what, const char *bytes, size_t n_bytes)
{
    struct reader reader = {run, what, bytes, bytes, bytes + n_bytes};
    struct value value = read_value(&reader);

    skip_space(&reader);
    if (reader.at < reader.end)
        fail_at(&reader, "more text after the value");
    return value;
}
