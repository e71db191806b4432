#include "gguf/models/tensor_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool gguf_tensor_name_split(struct gguf_string name, struct gguf_string *layer,
                            struct gguf_string *rest)
{
    uint64_t n = 4;

    if (!gguf_string_starts_with(name, "blk."))
        return false;
    while (n < name.length_bytes && name.data[n] >= '0' && name.data[n] <= '9')
        n++;
    if (n == 4 || n + 1 >= name.length_bytes || name.data[n] != '.')
        return false;
    *layer = (struct gguf_string){name.data + 4, n - 4};
    *rest = (struct gguf_string){name.data + n + 1, name.length_bytes - n - 1};
    return true;
}

uint32_t gguf_layer_number(struct gguf_string layer)
{
    uint32_t number = 0;

    for (uint64_t i = 0; i < layer.length_bytes; i++)
        number = 10 * number + (uint32_t)(layer.data[i] - '0');
    return layer.length_bytes > 0 && layer.length_bytes <= 9 ? number : UINT32_MAX;
}

uint32_t gguf_block_of(struct gguf_string name, struct gguf_string *rest)
{
    struct gguf_string layer = {0};

    *rest = gguf_string_of("");
    gguf_tensor_name_split(name, &layer, rest);
    return gguf_layer_number(layer);
}

/* Read a decimal number of at most nine digits, without leading zeros. */
static bool read_number(struct gguf_string name, uint64_t *at, uint32_t *number)
{
    const uint64_t start = *at;

    *number = 0;
    while (*at < name.length_bytes && name.data[*at] >= '0' && name.data[*at] <= '9') {
        if (*at - start == 9)
            return false;
        *number = *number * 10 + (uint32_t)(name.data[(*at)++] - '0');
    }
    return *at > start && (name.data[start] != '0' || *at == start + 1);
}

bool gguf_tensor_name_matches(struct gguf_string name, const char *pattern,
                              struct gguf_name_match *match)
{
    static const char *const suffixes[] = {"", ".weight", ".bias"};
    uint64_t at = 0;

    *match = (struct gguf_name_match){.suffix = ""};
    for (; *pattern != '\0'; pattern++) {
        if (*pattern == '%' || *pattern == '#') {
            if (!read_number(name, &at, *pattern == '%' ? &match->layer : &match->expert))
                return false;
        } else if (at == name.length_bytes || name.data[at++] != *pattern) {
            return false;
        }
    }
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        match->suffix = suffixes[i];
        if (gguf_string_equals((struct gguf_string){name.data + at, name.length_bytes - at},
                               suffixes[i]))
            return true;
    }
    return false;
}

bool gguf_tensor_name_expand(const char *pattern, const struct gguf_name_match *match,
                             char name[GGUF_NAME_BYTES])
{
    size_t length = 0;

    for (size_t n; length < GGUF_NAME_BYTES && *pattern != '\0';
         pattern += n + (pattern[n] != '\0')) {
        char number[12] = "";

        n = strcspn(pattern, "%#");
        if (pattern[n] != '\0')
            snprintf(number, sizeof number, "%" PRIu32,
                     pattern[n] == '%' ? match->layer : match->expert);
        length += (size_t)snprintf(name + length, GGUF_NAME_BYTES - length, "%.*s%s", (int)n,
                                   pattern, number);
    }
    if (length < GGUF_NAME_BYTES)
        length += (size_t)snprintf(name + length, GGUF_NAME_BYTES - length, "%s", match->suffix);
    return length < GGUF_NAME_BYTES;
}
