#include "fs/tree/output/json.h"

#include "fs/tree/output/shortest.h"

#include <unistr.h>

#include <string.h>

void fs_json_scalar(struct fs_sink *sink, const struct gguf_value *value)
{
    char text[FS_NUMBER_BYTES];
    size_t length;

    switch (value->type) {
    case GGUF_BOOL:
        fs_sink_literal(sink, value->boolean ? "true" : "false");
        return;
    case GGUF_INT8:
    case GGUF_INT16:
    case GGUF_INT32:
    case GGUF_INT64:
        length = fs_write_signed(value->i64, text);
        break;
    case GGUF_FLOAT32:
        length = fs_write_float(value->f32, text);
        break;
    case GGUF_FLOAT64:
        length = fs_write_double(value->f64, text);
        break;
    default:
        length = fs_write_unsigned(value->u64, text);
    }
    fs_sink_write(sink, text, length);
}

static bool is_escaped(uint8_t byte)
{
    return byte < 0x20 || byte == '"' || byte == '\\';
}

/* Write an ASCII character that JSON escapes. */
static void write_escape(struct fs_sink *sink, uint8_t byte)
{
    static const char escaped[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *found = byte ? strchr(escaped, byte) : NULL;

    if (found)
        fs_sink_write(sink, (char[]){'\\', letters[found - escaped]}, 2);
    else
        fs_sink_print(sink, "\\u%04x", byte);
}

/* Write bytes that need no escape: UTF-8 characters unchanged, each other byte as a surrogate. */
static void write_utf8(struct fs_sink *sink, const uint8_t *bytes, size_t n)
{
    while (n > 0) {
        const uint8_t *invalid = u8_check(bytes, n);
        const size_t n_valid = invalid ? (size_t)(invalid - bytes) : n;

        fs_sink_write(sink, bytes, n_valid);
        bytes += n_valid;
        n -= n_valid;
        if (invalid) {
            fs_sink_print(sink, "\\udc%02x", *bytes++);
            n--;
        }
    }
}

void fs_json_characters(struct fs_sink *sink, struct gguf_string string)
{
    const uint8_t *bytes = (const uint8_t *)string.data;
    const size_t length = string.length_bytes;

    for (size_t start = 0, end; start < length; start = end) {
        uint8_t all = 0;

        for (end = start; end < length && !is_escaped(bytes[end]); end++)
            all |= bytes[end];
        if (all >= 0x80)
            write_utf8(sink, bytes + start, end - start);
        else
            fs_sink_write(sink, bytes + start, end - start);
        if (end < length)
            write_escape(sink, bytes[end++]);
    }
}

void fs_json_string(struct fs_sink *sink, struct gguf_string string)
{
    fs_sink_write(sink, "\"", 1);
    fs_json_characters(sink, string);
    fs_sink_write(sink, "\"", 1);
}

void fs_json_text(struct fs_sink *sink, const char *text)
{
    if (text)
        fs_json_string(sink, (struct gguf_string){text, strlen(text)});
    else
        fs_sink_literal(sink, "null");
}

void fs_json_digits(struct fs_sink *sink, struct gguf_string text)
{
    uint64_t n = 0;

    while (n < text.length_bytes && text.data[n] >= '0' && text.data[n] <= '9')
        n++;
    if (n > 0 && n < 20 && n == text.length_bytes && (n == 1 || text.data[0] != '0'))
        fs_sink_write(sink, text.data, n);
    else
        fs_json_string(sink, text);
}

void fs_json_integers(struct fs_sink *sink, const uint64_t *numbers, size_t n)
{
    fs_sink_literal(sink, "[");
    for (size_t i = 0; i < n; i++) {
        fs_sink_write(sink, ",", i > 0);
        fs_sink_unsigned(sink, numbers[i]);
    }
    fs_sink_literal(sink, "]");
}

void fs_json_member(struct fs_sink *sink, const char *name, bool is_first)
{
    fs_sink_literal(sink, is_first ? "\"" : ",\"");
    fs_sink_literal(sink, name);
    fs_sink_literal(sink, "\":");
}

void fs_json_begin(struct fs_sink *sink, const char *name, const char *text)
{
    fs_sink_literal(sink, "{");
    fs_json_member(sink, name, true);
    fs_json_text(sink, text);
}

void fs_json_text_member(struct fs_sink *sink, const char *name, const char *text)
{
    fs_json_member(sink, name, false);
    fs_json_text(sink, text);
}

void fs_json_count(struct fs_sink *sink, const char *name, uint64_t count)
{
    fs_json_member(sink, name, false);
    fs_sink_unsigned(sink, count);
}

void fs_json_count_if(struct fs_sink *sink, const char *name, bool is_known, uint64_t count)
{
    if (is_known)
        fs_json_count(sink, name, count);
    else
        fs_json_text_member(sink, name, NULL);
}
