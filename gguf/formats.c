#include "gguf/formats.h"

#include <stddef.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct gguf_format formats[] = {
    {"GGUF", gguf_probe_gguf, gguf_parse_gguf},
    {"rwkv.cpp", gguf_probe_rwkv, gguf_parse_rwkv}, /* has a magic of ggml */
    {"ggml", gguf_probe_ggml, gguf_parse_ggml},
};

const struct gguf_format *gguf_find_format(const struct gguf_start *start)
{
    for (size_t i = 0; i < COUNT(formats); i++) {
        if (formats[i].probe(start))
            return &formats[i];
    }
    return NULL;
}
