#include "gguf/models/byte_alphabet.h"

#include <stdbool.h>
#include <string.h>

static bool is_visible(unsigned byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
}

/* Invisible bytes: 00 to 20 map to U+0100 and up, 7F to A0 to U+0121 and up, AD to U+0143. */
static unsigned character_of(unsigned byte)
{
    if (is_visible(byte))
        return byte;
    if (byte <= ' ')
        return 0x100 + byte;
    return byte == 0xad ? 0x143 : 0x121 + (byte - 0x7f);
}

/* Return the byte of a character, or -1. */
static int byte_of(unsigned character)
{
    if (character < 0x100)
        return is_visible(character) ? (int)character : -1;
    if (character <= 0x120)
        return (int)(character - 0x100);
    if (character <= 0x142)
        return (int)(character - 0x121 + 0x7f);
    return character == 0x143 ? 0xad : -1;
}

size_t gguf_alphabet_put(unsigned char byte, char out[2])
{
    const unsigned character = character_of(byte);

    if (character < 0x80) {
        out[0] = (char)character;
        return 1;
    }
    out[0] = (char)(0xc0 | character >> 6);
    out[1] = (char)(0x80 | (character & 0x3f));
    return 2;
}

size_t gguf_alphabet_decode(const char *text, size_t length, char *out)
{
    size_t n = 0;

    for (size_t i = 0; i < length; i++) {
        unsigned character = (unsigned char)text[i];
        int byte;

        if (character >= 0xc2 && character < 0xe0 && i + 1 < length &&
            ((unsigned char)text[i + 1] & 0xc0) == 0x80)
            character = (character & 0x1f) << 6 | ((unsigned char)text[++i] & 0x3f);
        else if (character >= 0x80)
            character = 0; /* longer, or not UTF-8: not in the alphabet */
        byte = byte_of(character);
        if (byte < 0) {
            memcpy(out, text, length);
            return length;
        }
        out[n++] = (char)byte;
    }
    return n;
}
