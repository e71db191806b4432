#include "fs/tree/gguf_bytes.h"

#include <assert.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers leave in the host's byte order");

void fs_gguf_bytes(struct fs_text *text, const void *bytes, size_t n_bytes)
{
    assert(n_bytes <= text->capacity - text->length);
    if (n_bytes > 0)
        memcpy(text->data + text->length, bytes, n_bytes);
    text->length += n_bytes;
}

void fs_gguf_number(struct fs_text *text, uint64_t number, unsigned width_bytes)
{
    fs_gguf_bytes(text, &number, width_bytes);
}

void fs_gguf_string(struct fs_text *text, struct gguf_string string)
{
    fs_gguf_number(text, string.length_bytes, sizeof string.length_bytes);
    fs_gguf_bytes(text, string.data, string.length_bytes);
}

void fs_gguf_scalar(struct fs_text *text, const struct gguf_value *value)
{
    switch (value->type) {
    case GGUF_BOOL:
        fs_gguf_number(text, value->boolean, 1);
        break;
    case GGUF_FLOAT32:
        fs_gguf_bytes(text, &value->f32, sizeof value->f32);
        break;
    case GGUF_FLOAT64:
        fs_gguf_bytes(text, &value->f64, sizeof value->f64);
        break;
    default:
        fs_gguf_number(text, value->u64, gguf_value_type_bytes(value->type));
    }
}
