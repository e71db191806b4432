#include "fs/tree/output/gguf_bytes.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers leave in the host's byte order");

void fs_gguf_number(struct fs_sink *sink, uint64_t number, unsigned width_bytes)
{
    fs_sink_write(sink, &number, width_bytes);
}

void fs_gguf_string(struct fs_sink *sink, struct gguf_string string)
{
    fs_gguf_number(sink, string.length_bytes, sizeof string.length_bytes);
    fs_sink_write(sink, string.data, string.length_bytes);
}

void fs_gguf_scalar(struct fs_sink *sink, const struct gguf_value *value)
{
    fs_sink_write(sink, &value->u64, gguf_value_type_bytes(value->type)); /* or its other members */
}
