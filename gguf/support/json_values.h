/*
 * Reads JSON (RFC 8259, and NaN and Infinity as Python writes them) that cJSON cannot: any bytes in
 * strings, NUL among them, integers of any length, the order of members.
 */
#pragma once

#include "gguf/support/strings.h"

#include <stddef.h>

enum gguf_json_kind {
    GGUF_JSON_NULL,
    GGUF_JSON_FALSE,
    GGUF_JSON_TRUE,
    GGUF_JSON_NUMBER,
    GGUF_JSON_STRING,
    GGUF_JSON_ARRAY,
    GGUF_JSON_OBJECT,
};

struct gguf_json {
    enum gguf_json_kind kind;
    struct gguf_string key;  /* of a member of an object; followed by a NUL */
    struct gguf_string text; /* of a string, followed by a NUL; the digits of a number */
    double number;
    const struct gguf_json *child; /* the first item of an array or object */
    const struct gguf_json *next;  /* the next item of the same array or object */
};

/* Return the most values that a text of n_bytes, followed by a NUL, can have. */
size_t gguf_json_room(const char *text, size_t n_bytes);

/*
 * Parse a text of n_bytes, followed by a NUL; strings are decoded in place and point into it.
 * \udc80 to \udcff become the bytes 80 to ff, as Python's surrogateescape has it, and other lone
 * surrogates U+FFFD. `values` is zeroed memory for gguf_json_room() of them; the whole document
 * becomes the first. Values may nest `max_depth` deep. Returns NULL, or the broken rule and the
 * offset of the byte that breaks it.
 */
const char *gguf_json_parse(char *text, size_t n_bytes, unsigned max_depth,
                            struct gguf_json *values, size_t *offset);

/* Return a member of an object, or NULL; other values, and NULL, have none. */
const struct gguf_json *gguf_json_member(const struct gguf_json *object, const char *key);
