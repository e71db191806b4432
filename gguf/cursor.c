#include "gguf/cursor.h"

#include <assert.h>
#include <errno.h>

uint64_t gguf_cursor_left(const struct gguf_cursor *cursor)
{
    return cursor->size_bytes - cursor->offset;
}

int gguf_cursor_skip(struct gguf_cursor *cursor, uint64_t n_bytes)
{
    if (n_bytes > gguf_cursor_left(cursor))
        return -ENODATA;
    cursor->offset += n_bytes;
    return 0;
}

int gguf_cursor_number(struct gguf_cursor *cursor, unsigned width_bytes, uint64_t *number)
{
    const uint8_t *bytes;
    uint64_t value = 0;
    unsigned i;

    assert(width_bytes <= sizeof value);
    if (width_bytes > gguf_cursor_left(cursor))
        return -ENODATA;
    bytes = cursor->data + cursor->offset;
    for (i = 0; i < width_bytes; i++) {
        unsigned from = cursor->encoding.big_endian ? i : width_bytes - 1 - i;

        value = value << 8 | bytes[from];
    }
    cursor->offset += width_bytes;
    *number = value;
    return 0;
}

int gguf_cursor_u32(struct gguf_cursor *cursor, uint32_t *number)
{
    uint64_t wide;
    int result = gguf_cursor_number(cursor, sizeof *number, &wide);

    if (result == 0)
        *number = (uint32_t)wide;
    return result;
}

int gguf_cursor_u64(struct gguf_cursor *cursor, uint64_t *number)
{
    return gguf_cursor_number(cursor, sizeof *number, number);
}

int gguf_cursor_length(struct gguf_cursor *cursor, uint64_t *length)
{
    return gguf_cursor_number(cursor, cursor->encoding.length_bytes, length);
}

int gguf_cursor_string(struct gguf_cursor *cursor, struct gguf_string *string)
{
    const uint64_t start = cursor->offset;
    uint64_t length_bytes;

    if (gguf_cursor_length(cursor, &length_bytes) < 0)
        return -ENODATA;
    if (length_bytes > gguf_cursor_left(cursor)) {
        cursor->offset = start;
        return -ENODATA;
    }
    *string = (struct gguf_string){(const char *)cursor->data + cursor->offset, length_bytes};
    cursor->offset += length_bytes;
    return 0;
}
