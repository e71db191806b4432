#include "gguf/support/strings.h"

#include "gguf/support/safe_print.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool gguf_string_equals(struct gguf_string string, const char *text)
{
    return gguf_string_compare(string, (struct gguf_string){text, strlen(text)}) == 0;
}

bool gguf_string_starts_with(struct gguf_string string, const char *text)
{
    const size_t n = strlen(text);

    return string.length_bytes >= n &&
           gguf_string_equals((struct gguf_string){string.data, n}, text);
}

bool gguf_string_ends_with(struct gguf_string string, const char *text)
{
    const size_t n = strlen(text);

    return string.length_bytes >= n &&
           gguf_string_equals((struct gguf_string){string.data + string.length_bytes - n, n}, text);
}

bool gguf_string_contains(struct gguf_string string, const char *text)
{
    return memmem(string.data, string.length_bytes, text, strlen(text));
}

bool gguf_text_starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

bool gguf_next_word(const char **list, struct gguf_string *word)
{
    if (!*list)
        return false;
    *list += strspn(*list, " ");
    *word = (struct gguf_string){*list, strcspn(*list, " ")};
    *list += word->length_bytes;
    return word->length_bytes > 0;
}

bool gguf_words_have(const char *words, struct gguf_string text)
{
    struct gguf_string word;

    while (gguf_next_word(&words, &word))
        if (gguf_string_compare(word, text) == 0)
            return true;
    return false;
}

int gguf_string_compare(struct gguf_string a, struct gguf_string b)
{
    const uint64_t common = a.length_bytes < b.length_bytes ? a.length_bytes : b.length_bytes;
    const int order = common ? memcmp(a.data, b.data, common) : 0;

    if (order != 0)
        return order;
    return (a.length_bytes > b.length_bytes) - (a.length_bytes < b.length_bytes);
}

int gguf_string_order(const void *a, const void *b)
{
    return gguf_string_compare(*(const struct gguf_string *)a, *(const struct gguf_string *)b);
}

bool gguf_next_part(struct gguf_string *text, char separator, struct gguf_string *part)
{
    const char *end =
        text->length_bytes ? memchr(text->data, separator, (size_t)text->length_bytes) : NULL;

    *part = *text;
    if (end)
        part->length_bytes = (uint64_t)(end - text->data);
    text->data += part->length_bytes + (end != NULL);
    text->length_bytes -= part->length_bytes + (end != NULL);
    return part->length_bytes > 0;
}

int gguf_string_copy(struct gguf_string *string)
{
    char *copy = malloc(string->length_bytes + 1);

    if (!copy)
        return -ENOMEM;
    if (string->length_bytes)
        memcpy(copy, string->data, string->length_bytes);
    copy[string->length_bytes] = '\0';
    string->data = copy;
    return 0;
}

struct gguf_quoted gguf_quote(struct gguf_string string)
{
    struct gguf_quoted quoted;
    /* Room for one escaped byte or character, an ellipsis, the closing quote and the NUL. */
    const size_t limit = sizeof quoted.text - sizeof "\\xNN...\"";
    size_t used = 0;
    uint64_t i = 0;

    quoted.text[used++] = '"';
    while (i < string.length_bytes && used < limit) {
        const char *bytes = string.data + i;
        size_t n = gguf_printable_length(bytes, string.length_bytes - i);

        if (n == 1 && (*bytes == '"' || *bytes == '\\'))
            quoted.text[used++] = '\\';
        n = n > 0 ? n : 1;
        used += gguf_escape(bytes, n, quoted.text + used);
        i += n;
    }
    snprintf(quoted.text + used, sizeof quoted.text - used, "%s\"",
             i < string.length_bytes ? "..." : "");
    return quoted;
}

char *gguf_text(const char *format, ...)
{
    va_list args;
    char *text;

    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    return text;
}
