#include "fs/tree/core/names.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Never begins an escape: no hexadecimal digit follows its '%'. */
#define CUT_MARK    "%~"
#define HASH_DIGITS 16

static bool is_unsafe(unsigned char c)
{
    return c < 0x20 || c == 0x7f || c == '/' || c == '%';
}

/* 64-bit FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/). */
static uint64_t hash_of(struct gguf_string name)
{
    uint64_t hash = 0xcbf29ce484222325;

    for (uint64_t i = 0; i < name.length_bytes; i++)
        hash = (hash ^ (unsigned char)name.data[i]) * 0x100000001b3;
    return hash;
}

/* Move `length` back to the start of a UTF-8 character if it lies inside one. */
static size_t whole_characters(const char *text, size_t length)
{
    size_t start = length;

    while (start > 0 && length - start < 3 && ((unsigned char)text[start] & 0xc0) == 0x80)
        start--;
    return ((unsigned char)text[start] & 0xc0) == 0xc0 ? start : length;
}

void fs_name_escape(struct gguf_string name, const char *suffix, char file_name[FS_NAME_BYTES])
{
    const size_t limit = FS_NAME_BYTES - 1 - strlen(suffix);
    const size_t cut_limit = limit - strlen(CUT_MARK) - HASH_DIGITS;
    const bool is_dots = (name.length_bytes == 1 || name.length_bytes == 2) &&
                         strncmp(name.data, "..", name.length_bytes) == 0;
    size_t used = 0;
    size_t cut = 0; /* the last place up to cut_limit at which the name can be cut */

    assert(strlen(suffix) <= 32);
    for (uint64_t i = 0; i < name.length_bytes && used <= limit; i++) {
        const unsigned char c = (unsigned char)name.data[i];

        if (is_dots || is_unsafe(c)) {
            char escaped[4];

            snprintf(escaped, sizeof escaped, "%%%02X", c);
            for (size_t j = 0; escaped[j] != '\0' && used <= limit; j++)
                file_name[used++] = escaped[j];
        } else {
            file_name[used++] = (char)c;
        }
        if (used <= cut_limit)
            cut = used;
    }
    if (name.length_bytes == 0)
        file_name[used++] = '%';
    if (used > limit) {
        used = whole_characters(file_name, cut);
        used += (size_t)sprintf(file_name + used, "%s%016" PRIx64, CUT_MARK, hash_of(name));
    }
    memcpy(file_name + used, suffix, strlen(suffix) + 1);
}
