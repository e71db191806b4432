#include "contrib/runner/tree/json_text.h"

#include <stdbool.h>
#include <string.h>

/* Return true if a byte of the word is below a value of at most 0x80. */
static bool has_below(uint64_t word, uint8_t value)
{
    const uint64_t ones = 0x0101010101010101u;

    return ((word - ones * value) & ~word & ones * 0x80) != 0;
}

static bool ends_plain_text(unsigned char c)
{
    return c < 0x20 || c == '"' || c == '\\';
}

size_t run_plain_length(const unsigned char *at, const unsigned char *end)
{
    const uint64_t ones = 0x0101010101010101u;
    const unsigned char *const first = at;

    for (uint64_t word; (size_t)(end - at) >= sizeof word; at += sizeof word) {
        memcpy(&word, at, sizeof word);
        if (has_below(word, 0x20) || has_below(word ^ ones * '"', 1) ||
            has_below(word ^ ones * '\\', 1))
            break;
    }
    while (at < end && !ends_plain_text(*at))
        at++;
    return (size_t)(at - first);
}

size_t run_encode_utf8(uint32_t point, uint8_t bytes[4])
{
    if (point < 0x80) {
        bytes[0] = (uint8_t)point;
        return 1;
    }
    if (point < 0x800) {
        bytes[0] = (uint8_t)(0xc0 | point >> 6);
        bytes[1] = (uint8_t)(0x80 | (point & 0x3f));
        return 2;
    }
    if (point < 0x10000) {
        bytes[0] = (uint8_t)(0xe0 | point >> 12);
        bytes[1] = (uint8_t)(0x80 | (point >> 6 & 0x3f));
        bytes[2] = (uint8_t)(0x80 | (point & 0x3f));
        return 3;
    }
    bytes[0] = (uint8_t)(0xf0 | point >> 18);
    bytes[1] = (uint8_t)(0x80 | (point >> 12 & 0x3f));
    bytes[2] = (uint8_t)(0x80 | (point >> 6 & 0x3f));
    bytes[3] = (uint8_t)(0x80 | (point & 0x3f));
    return 4;
}
