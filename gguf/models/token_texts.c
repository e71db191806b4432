#include "gguf/models/token_texts.h"

#include <string.h>

static int digit_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

bool gguf_byte_token_parse(const char *text, size_t length, uint8_t *byte)
{
    if (length != GGUF_BYTE_TOKEN_BYTES || memcmp(text, "<0x", 3) != 0 || text[5] != '>' ||
        digit_value(text[3]) < 0 || digit_value(text[4]) < 0)
        return false;
    *byte = (uint8_t)(16 * digit_value(text[3]) + digit_value(text[4]));
    return true;
}

size_t gguf_space_marks_decode(const char *text, size_t length, char *out)
{
    size_t n = 0;

    for (size_t i = 0; i < length; i++) {
        if (length - i >= GGUF_SPACE_MARK_BYTES &&
            memcmp(text + i, GGUF_SPACE_MARK, GGUF_SPACE_MARK_BYTES) == 0) {
            out[n++] = ' ';
            i += GGUF_SPACE_MARK_BYTES - 1;
        } else {
            out[n++] = text[i];
        }
    }
    return n;
}

/* Digits that are none count as 0. */
static unsigned digit(char c)
{
    const int value = digit_value(c);

    return value < 0 ? 0 : (unsigned)value;
}

size_t gguf_token_unescape(const char *text, size_t length, char *out)
{
    size_t n = 0;

    for (size_t i = 0; i < length; i++) {
        char c = text[i];

        if (c == '\\' && i + 1 < length) {
            c = text[++i];
            if (c == 't')
                c = '\t';
            else if (c == 'n')
                c = '\n';
            else if (c == 'r')
                c = '\r';
            else if (c == 'x' && i + 2 < length) {
                c = (char)(digit(text[i + 1]) << 4 | digit(text[i + 2]));
                i += 2;
            }
        }
        out[n++] = c;
    }
    return n;
}
