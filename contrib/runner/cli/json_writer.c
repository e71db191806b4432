#include "contrib/runner/cli/json_writer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add(struct run_json *json, const char *bytes, size_t length)
{
    if (gguf_buffer_add(&json->text, bytes, length) < 0)
        json->is_memory_missing = true;
}

static void add_text(struct run_json *json, const char *text)
{
    add(json, text, strlen(text));
}

/* Write a comma, unless this is the first member. */
static void add_comma(struct run_json *json)
{
    const struct gguf_buffer *text = &json->text;

    if (text->length > 0 && !strchr("{[", text->bytes[text->length - 1]))
        add_text(json, ",");
}

/*
 * Escape all control characters, also those that JSON allows, because the output may go to a
 * terminal.
 */
static void add_quoted(struct run_json *json, const char *bytes, size_t length)
{
    add_text(json, "\"");
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)bytes[i];
        const unsigned char next = i + 1 < length ? (unsigned char)bytes[i + 1] : 0;
        char escaped[8];

        if (c == '"' || c == '\\') {
            snprintf(escaped, sizeof escaped, "\\%c", c);
        } else if (c == '\n') {
            snprintf(escaped, sizeof escaped, "\\n");
        } else if (c < 0x20 || c == 0x7f) {
            snprintf(escaped, sizeof escaped, "\\u%04x", c);
        } else if (c == 0xc2 && next >= 0x80 && next <= 0x9f) { /* U+0080 to U+009F */
            snprintf(escaped, sizeof escaped, "\\u%04x", next);
            i++;
        } else {
            add(json, bytes + i, 1);
            continue;
        }
        add_text(json, escaped);
    }
    add_text(json, "\"");
}

static void add_name(struct run_json *json, const char *name)
{
    add_comma(json);
    if (!name)
        return;
    add_quoted(json, name, strlen(name));
    add_text(json, ":");
}

void run_json_begin(struct run_json *json, const char *name)
{
    add_name(json, name);
    add_text(json, "{");
}

void run_json_end(struct run_json *json)
{
    add_text(json, "}");
}

void run_json_string(struct run_json *json, const char *name, const char *bytes, size_t length)
{
    add_name(json, name);
    add_quoted(json, bytes, length);
}

void run_json_number(struct run_json *json, const char *name, double number)
{
    char digits[32] = "null";

    /* Use the fewest digits that read back to the same value. */
    for (int precision = 15; isfinite(number) && precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, number);
        if (strtod(digits, NULL) == number)
            break;
    }
    add_name(json, name);
    add_text(json, digits);
}

void run_json_integer(struct run_json *json, const char *name, uint64_t number)
{
    char digits[24];

    snprintf(digits, sizeof digits, "%" PRIu64, number);
    add_name(json, name);
    add_text(json, digits);
}

void run_json_ids(struct run_json *json, const char *name, const struct run_ids *ids)
{
    add_name(json, name);
    add_text(json, "[");
    for (size_t i = 0; i < ids->n; i++) {
        char digits[16];

        snprintf(digits, sizeof digits, "%" PRId32, ids->list[i]);
        add_comma(json);
        add_text(json, digits);
    }
    add_text(json, "]");
}

void run_json_free(struct run_json *json)
{
    gguf_buffer_free(&json->text);
}
