#include "contrib/runner/chat/text_buffer.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int run_buffer_add(struct run_buffer *text, const void *bytes, size_t length)
{
    size_t needed;

    if (__builtin_add_overflow(text->length, length, &needed) || needed > SIZE_MAX / 2 - 1)
        return -ENOMEM;
    if (needed + 1 > text->capacity) {
        const size_t capacity = needed + needed / 2 + 64;
        char *larger = realloc(text->bytes, capacity);

        if (!larger)
            return -ENOMEM;
        text->bytes = larger;
        text->capacity = capacity;
    }
    if (length > 0)
        memcpy(text->bytes + text->length, bytes, length);
    text->length = needed;
    text->bytes[needed] = '\0';
    return 0;
}

int run_buffer_add_string(struct run_buffer *text, const char *string)
{
    return run_buffer_add(text, string, strlen(string));
}

void run_buffer_drop(struct run_buffer *text, size_t n)
{
    if (n == 0)
        return;
    memmove(text->bytes, text->bytes + n, text->length - n);
    text->length -= n;
    text->bytes[text->length] = '\0';
}

void run_buffer_free(struct run_buffer *text)
{
    free(text->bytes);
    *text = (struct run_buffer){0};
}
