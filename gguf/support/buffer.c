#include "gguf/support/buffer.h"

#include "gguf/support/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int gguf_buffer_add(struct gguf_buffer *buffer, const void *bytes, size_t length)
{
    size_t needed;
    char *grown;

    if (__builtin_add_overflow(buffer->length, length, &needed) ||
        __builtin_add_overflow(needed, 1, &needed))
        return -ENOMEM;
    grown = gguf_grow(buffer->bytes, &buffer->capacity, needed, 1);
    if (!grown)
        return -ENOMEM;
    buffer->bytes = grown;
    if (length > 0)
        memcpy(buffer->bytes + buffer->length, bytes, length);
    buffer->length += length;
    buffer->bytes[buffer->length] = '\0';
    return 0;
}

int gguf_buffer_add_string(struct gguf_buffer *buffer, const char *string)
{
    return gguf_buffer_add(buffer, string, strlen(string));
}

void gguf_buffer_drop(struct gguf_buffer *buffer, size_t n)
{
    if (n == 0)
        return;
    memmove(buffer->bytes, buffer->bytes + n, buffer->length - n);
    buffer->length -= n;
    buffer->bytes[buffer->length] = '\0';
}

void gguf_buffer_free(struct gguf_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct gguf_buffer){0};
}
