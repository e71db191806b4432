#include "gguf/support/safe_print.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistr.h>

static bool is_control(ucs4_t character)
{
    return character < 0x20 || (character >= 0x7f && character <= 0x9f) ||
           (character >= 0x202a && character <= 0x202e) ||
           (character >= 0x2066 && character <= 0x2069);
}

size_t gguf_printable_length(const char *bytes, size_t length)
{
    ucs4_t character;
    const int n = u8_mbtoucr(&character, (const uint8_t *)bytes, length);

    return n > 0 && !is_control(character) ? (size_t)n : 0;
}

size_t gguf_escape(const char *bytes, size_t length, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const char *start = out;

    while (length > 0) {
        const unsigned byte = (unsigned char)*bytes;
        size_t n = gguf_printable_length(bytes, length);

        if (n > 0) {
            memcpy(out, bytes, n);
            out += n;
        } else {
            n = 1;
            memcpy(out, (char[]){'\\', 'x', digits[byte >> 4], digits[byte & 15]}, 4);
            out += GGUF_ESCAPED_BYTES;
        }
        bytes += n;
        length -= n;
    }
    return (size_t)(out - start);
}

char *gguf_escaped(const char *string)
{
    const size_t length = strlen(string);
    char *copy = malloc(length * GGUF_ESCAPED_BYTES + 1);

    if (copy)
        copy[gguf_escape(string, length, copy)] = '\0';
    return copy;
}

void gguf_print_safe(FILE *stream, const char *bytes, size_t length)
{
    while (length > 0) {
        const size_t n = gguf_printable_length(bytes, length);

        if (n > 0)
            fwrite(bytes, 1, n, stream);
        else
            fprintf(stream, "\\x%02x", (unsigned char)*bytes);
        bytes += n > 0 ? n : 1;
        length -= n > 0 ? n : 1;
    }
}

void gguf_print_safe_string(FILE *stream, const char *string)
{
    gguf_print_safe(stream, string, strlen(string));
}

void gguf_vprint_safe_format(FILE *stream, const char *format, va_list args)
{
    char text[8192]; /* messages must not need memory: some report that memory is short */
    char *longer = NULL;
    va_list again;
    int length;

    va_copy(again, args);
    length = vsnprintf(text, sizeof text, format, args);
    if (length >= (int)sizeof text && vasprintf(&longer, format, again) < 0)
        longer = NULL;
    va_end(again);
    if (length < 0)
        return;
    if (longer) {
        gguf_print_safe(stream, longer, (size_t)length);
        free(longer);
        return;
    }
    if (length >= (int)sizeof text)
        length = sizeof text - 1;
    gguf_print_safe(stream, text, (size_t)length);
}

void gguf_print_safe_lines(FILE *stream, const char *bytes, size_t length)
{
    while (length > 0) {
        size_t n = 0;

        while (n < length && bytes[n] != '\n' && bytes[n] != '\t')
            n++;
        gguf_print_safe(stream, bytes, n);
        if (n < length)
            putc(bytes[n++], stream);
        bytes += n;
        length -= n;
    }
}

void gguf_print_safe_format(FILE *stream, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    gguf_vprint_safe_format(stream, format, args);
    va_end(args);
}

void gguf_print_shell_word(FILE *stream, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "%+,-./:=@_";
    char *escaped = gguf_escaped(word);
    const bool is_dollar_quoted = !escaped || strcmp(escaped, word) != 0;

    free(escaped);
    if (*word != '\0' && word[strspn(word, plain)] == '\0') {
        fputs(word, stream);
        return;
    }
    fputs(is_dollar_quoted ? "$'" : "'", stream);
    while (*word != '\0') {
        /* Everything up to the next character that has a meaning between the quotes. */
        const size_t n = strcspn(word, is_dollar_quoted ? "'\\" : "'");

        gguf_print_safe(stream, word, n);
        word += n;
        if (*word != '\0')
            fprintf(stream, is_dollar_quoted ? "\\%c" : "'\\%c'", *word++);
    }
    fputc('\'', stream);
}
