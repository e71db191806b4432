#include "contrib/runner/tree/json_reader.h"

#include "contrib/runner/tree/open_below.h"
#include "gguf/support/arrays.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unistr.h>

#define BUFFER_BYTES 65536

/* The longest number, in characters; the tree writes at most 24. */
#define NUMBER_BYTES 64

/* Digits of an integer that fits 32 bits. */
#define MAX_DIGITS 9

#define MAX_DEPTH 64

enum expected {
    EXPECT_VALUE,
    EXPECT_KEY,
    EXPECT_FIRST, /* of an array or object, or its end */
    EXPECT_NEXT,  /* a comma or the end */
    EXPECT_NOTHING,
};

struct run_json {
    int fd;
    char *name;
    enum expected expected;
    unsigned depth;
    uint64_t objects;        /* bit i: level i is an object */
    uint64_t limit;          /* in bytes */
    uint64_t offset;         /* of the buffer's first byte in the file */
    size_t at, end;          /* in the buffer */
    int read_code;           /* a negative errno if reading failed */
    struct gguf_buffer text; /* the string read last */
    unsigned char buffer[BUFFER_BYTES];
};

int run_json_open(int dir_fd, const char *path, uint64_t limit_bytes, struct run_json **out,
                  struct run_failure *failure)
{
    struct run_json *json;

    *out = NULL;
    json = calloc(1, sizeof *json);
    if (!json)
        return run_fail_memory(failure);
    json->fd = run_open_below(dir_fd, path, O_RDONLY | O_NONBLOCK);
    if (json->fd < 0) {
        int code = run_fail(failure, json->fd, "%s: %s", path, run_open_below_error(json->fd));

        run_json_close(json);
        return code;
    }
    json->limit = limit_bytes;
    json->name = strdup(path);
    if (!json->name) {
        run_json_close(json);
        return run_fail_memory(failure);
    }
    *out = json;
    return 0;
}

void run_json_close(struct run_json *json)
{
    if (!json)
        return;
    if (json->fd >= 0)
        close(json->fd);
    free(json->name);
    gguf_buffer_free(&json->text);
    free(json);
}

/* ---- bytes ---- */

/* Return the next byte without taking it; -1 at the end of the file or after an error. */
static int peek(struct run_json *json)
{
    if (json->at == json->end && json->read_code == 0) {
        ssize_t n;

        json->offset += json->end;
        json->at = json->end = 0;
        do
            n = read(json->fd, json->buffer, sizeof json->buffer);
        while (n < 0 && errno == EINTR);
        if (n < 0)
            json->read_code = -errno;
        else
            json->end = (size_t)n;
        if (json->offset + json->end > json->limit) {
            json->end = 0;
            json->read_code = -EFBIG;
        }
    }
    return json->at < json->end ? json->buffer[json->at] : -1;
}

static int take(struct run_json *json)
{
    const int c = peek(json);

    json->at += c >= 0;
    return c;
}

static int fail_here(const struct run_json *json, struct run_failure *failure)
{
    const unsigned long long offset = json->offset + json->at;

    if (json->read_code == -EFBIG)
        return run_fail(failure, -EFBIG, "%s: larger than %llu bytes", json->name,
                        (unsigned long long)json->limit);
    if (json->read_code < 0)
        return run_fail(failure, json->read_code, "%s: %s", json->name, strerror(-json->read_code));
    return run_fail(failure, -EINVAL, "%s: byte %llu: not valid JSON", json->name, offset);
}

static int peek_past_space(struct run_json *json)
{
    int c;

    while ((c = peek(json)) == ' ' || c == '\t' || c == '\r' || c == '\n')
        json->at++;
    return c;
}

/* ---- strings ---- */

static int add_bytes(struct run_json *json, const void *bytes, size_t n,
                     struct run_failure *failure)
{
    if (json->text.length + n > RUN_JSON_MAX_TEXT)
        return run_fail(failure, -E2BIG, "%s: a string of more than %zu bytes", json->name,
                        RUN_JSON_MAX_TEXT);
    return gguf_buffer_add(&json->text, bytes, n) < 0 ? run_fail_memory(failure) : 0;
}

/* Return the number of buffered bytes, from the next one on, that stand in a string as they are. */
static size_t plain_length(const struct run_json *json)
{
    size_t at = json->at;

    while (at < json->end && json->buffer[at] >= 0x20 && json->buffer[at] != '"' &&
           json->buffer[at] != '\\')
        at++;
    return at - json->at;
}

/* Take four hexadecimal digits and return their value, or -1. */
static int32_t take_code_unit(struct run_json *json)
{
    int32_t unit = 0;

    for (int i = 0; i < 4; i++) {
        const int c = take(json);

        if (c >= '0' && c <= '9')
            unit = unit * 16 + c - '0';
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            unit = unit * 16 + (c | 0x20) - 'a' + 10;
        else
            return -1;
    }
    return unit;
}

/* Take the rest of a \u escape: a character, a surrogate pair, or a byte as a lone surrogate. */
static int take_unicode(struct run_json *json, struct run_failure *failure)
{
    const int32_t unit = take_code_unit(json);
    uint8_t bytes[4];
    int n;

    if (unit >= 0xdc80 && unit <= 0xdcff) {
        bytes[0] = (uint8_t)(unit - 0xdc00);
        n = 1;
    } else if (unit >= 0xd800 && unit <= 0xdbff) {
        const bool is_pair = take(json) == '\\' && take(json) == 'u';
        const int32_t second = is_pair ? take_code_unit(json) : -1;

        if (second < 0xdc00 || second > 0xdfff)
            return fail_here(json, failure);
        n = u8_uctomb(bytes,
                      0x10000 + ((uint32_t)(unit - 0xd800) << 10 | (uint32_t)(second - 0xdc00)),
                      sizeof bytes);
    } else if (unit < 0 || (unit >= 0xdc00 && unit <= 0xdfff)) {
        return fail_here(json, failure);
    } else {
        n = u8_uctomb(bytes, (uint32_t)unit, sizeof bytes);
    }
    return add_bytes(json, bytes, (size_t)n, failure);
}

static int take_escape(struct run_json *json, struct run_failure *failure)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const int c = take(json);
    const char *name = c > 0 ? strchr(names, c) : NULL;

    if (c == 'u')
        return take_unicode(json, failure);
    return name ? add_bytes(json, &values[name - names], 1, failure) : fail_here(json, failure);
}

/* Take the rest of a string after its first quote. */
static int take_string(struct run_json *json, struct run_failure *failure)
{
    int code;

    json->text.length = 0;
    code = add_bytes(json, NULL, 0, failure);
    while (code == 0) {
        const int c = peek(json);
        const size_t n = plain_length(json);

        if (c < 0x20)
            return fail_here(json, failure);
        if (n > 0) {
            code = add_bytes(json, json->buffer + json->at, n, failure);
            json->at += n;
            continue;
        }
        json->at++;
        if (c == '"')
            return 0;
        code = take_escape(json, failure);
    }
    return code;
}

/*
 * Take a string that is a value. A string without escapes, like most elements of long arrays, stays
 * in the buffer if all of it is there, and its closing quote becomes the NUL.
 */
static int take_string_value(struct run_json *json, struct run_json_token *token,
                             struct run_failure *failure)
{
    const size_t n = plain_length(json), end = json->at + n;
    int code;

    if (end < json->end && json->buffer[end] == '"') {
        json->buffer[end] = '\0';
        token->text = (const char *)json->buffer + json->at;
        token->length = n;
        json->at = end + 1;
        return 0;
    }
    code = take_string(json, failure);
    token->text = json->text.bytes;
    token->length = json->text.length;
    return code;
}

/* ---- other values ---- */

static size_t count_digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* Return true if the text is a JSON number: no leading zeros, digits around a point. */
static bool is_number(const char *text)
{
    size_t n;

    text += *text == '-';
    n = count_digits(text);
    if (n == 0 || (n > 1 && *text == '0'))
        return false;
    text += n;
    if (*text == '.') {
        n = count_digits(++text);
        if (n == 0)
            return false;
        text += n;
    }
    if (*text == 'e' || *text == 'E') {
        text++;
        text += *text == '+' || *text == '-';
        n = count_digits(text);
        if (n == 0)
            return false;
        text += n;
    }
    return *text == '\0';
}

/*
 * Take an integer of at most MAX_DIGITS digits that lies in the buffer with the byte after it. Such
 * numbers fill long arrays. Returns false if the number has another form.
 */
static bool take_small_integer(struct run_json *json, double *number)
{
    const unsigned char *at = json->buffer + json->at, *end = json->buffer + json->end;
    const bool is_negative = at < end && *at == '-';
    const unsigned char *first = at + is_negative;
    uint32_t value = 0;

    for (at = first; at < end && at - first < MAX_DIGITS && *at >= '0' && *at <= '9'; at++)
        value = value * 10 + (uint32_t)(*at - '0');
    if (at == first || at == end || (at - first > 1 && *first == '0') ||
        strchr("0123456789.eE+-", *at))
        return false;
    *number = is_negative ? -(double)value : (double)value;
    json->at = (size_t)(at - json->buffer);
    return true;
}

static int take_number(struct run_json *json, double *number, struct run_failure *failure)
{
    char text[NUMBER_BYTES] = "";
    size_t n = 0;
    int c;

    if (take_small_integer(json, number))
        return 0;
    while (n < sizeof text - 1 && (c = peek(json)) >= 0 && c != '\0' &&
           strchr("0123456789+-.eE", c)) {
        text[n++] = (char)c;
        json->at++;
    }
    if (!is_number(text))
        return fail_here(json, failure);
    *number = strtod(text, NULL);
    return 0;
}

static int take_word(struct run_json *json, const char *word, struct run_failure *failure)
{
    for (; *word != '\0'; word++, json->at++)
        if (peek(json) != *word)
            return fail_here(json, failure);
    return 0;
}

static int enter(struct run_json *json, bool is_object, struct run_failure *failure)
{
    const uint64_t level = UINT64_C(1) << json->depth % MAX_DEPTH;

    if (json->depth == MAX_DEPTH)
        return run_fail(failure, -EINVAL, "%s: nested more than %d deep", json->name, MAX_DEPTH);
    json->objects = is_object ? json->objects | level : json->objects & ~level;
    json->depth++;
    json->at++;
    json->expected = EXPECT_FIRST;
    return 0;
}

static bool is_in_object(const struct run_json *json)
{
    return json->depth > 0 && json->objects >> (json->depth - 1) & 1;
}

static void leave(struct run_json *json)
{
    json->expected = json->depth > 0 ? EXPECT_NEXT : EXPECT_NOTHING;
}

static int take_value(struct run_json *json, int c, struct run_json_token *token,
                      struct run_failure *failure)
{
    int code;

    switch (c) {
    case '[':
    case '{':
        token->kind = c == '{' ? RUN_JSON_OBJECT : RUN_JSON_ARRAY;
        return enter(json, c == '{', failure);
    case '"':
        json->at++;
        token->kind = RUN_JSON_STRING;
        code = take_string_value(json, token, failure);
        break;
    case 'n':
        token->kind = RUN_JSON_NULL;
        code = take_word(json, "null", failure);
        break;
    case 't':
        token->kind = RUN_JSON_TRUE;
        code = take_word(json, "true", failure);
        break;
    case 'f':
        token->kind = RUN_JSON_FALSE;
        code = take_word(json, "false", failure);
        break;
    default:
        token->kind = RUN_JSON_NUMBER;
        code = take_number(json, &token->number, failure);
    }
    leave(json);
    return code;
}

static int take_key(struct run_json *json, struct run_json_token *token,
                    struct run_failure *failure)
{
    int code = take(json) == '"' ? take_string(json, failure) : fail_here(json, failure);

    token->kind = RUN_JSON_KEY;
    if (code == 0 && (peek_past_space(json) != ':' || take(json) < 0))
        code = fail_here(json, failure);
    token->text = json->text.bytes;
    token->length = json->text.length;
    json->expected = EXPECT_VALUE;
    return code;
}

int run_json_next(struct run_json *json, struct run_json_token *token, struct run_failure *failure)
{
    int c = peek_past_space(json);
    int code;

    *token = (struct run_json_token){0};
    if (json->expected == EXPECT_NOTHING)
        return c < 0 && json->read_code == 0 ? 0 : fail_here(json, failure);
    if ((json->expected == EXPECT_FIRST || json->expected == EXPECT_NEXT) &&
        c == (is_in_object(json) ? '}' : ']')) {
        json->at++;
        json->depth--;
        leave(json);
        token->kind = RUN_JSON_END;
        return 1;
    }
    if (json->expected == EXPECT_NEXT) {
        if (c != ',')
            return fail_here(json, failure);
        json->at++;
        c = peek_past_space(json);
    }
    if (json->expected != EXPECT_VALUE)
        json->expected = is_in_object(json) ? EXPECT_KEY : EXPECT_VALUE;
    code = json->expected == EXPECT_KEY ? take_key(json, token, failure)
                                        : take_value(json, c, token, failure);
    return code < 0 ? code : 1;
}

int run_json_skip(struct run_json *json, struct run_failure *failure)
{
    const unsigned depth = json->depth;
    struct run_json_token token;
    int code = 1;

    while (code > 0 && json->depth >= depth)
        code = run_json_next(json, &token, failure);
    return code < 0 ? code : 0;
}

int run_json_element(struct run_json *json, struct run_json_token *element,
                     struct run_failure *failure)
{
    int code = run_json_next(json, element, failure);

    if (code <= 0 || element->kind == RUN_JSON_END)
        return code < 0 ? code : 0;
    if (element->kind == RUN_JSON_ARRAY || element->kind == RUN_JSON_OBJECT)
        code = run_json_skip(json, failure);
    return code < 0 ? code : 1;
}
