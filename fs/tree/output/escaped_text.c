#include "fs/tree/output/escaped_text.h"

#include "gguf/support/safe_print.h"

#include <string.h>

/* Return true for U+2028 and U+2029, which end a line for some programs. */
static bool is_separator(const char *bytes, size_t length)
{
    return length == 3 &&
           (memcmp(bytes, "\xe2\x80\xa8", 3) == 0 || memcmp(bytes, "\xe2\x80\xa9", 3) == 0);
}

static void write_byte(struct fs_sink *sink, char byte)
{
    static const char escaped[] = "\n\r\t\\", letters[] = "nrt\\";
    const char *found = byte != '\0' ? strchr(escaped, byte) : NULL;

    if (found)
        fs_sink_write(sink, (char[]){'\\', letters[found - escaped]}, 2);
    else
        fs_sink_print(sink, "\\x%02X", (unsigned char)byte);
}

void fs_escaped_write(struct fs_sink *sink, const char *bytes, size_t length,
                      bool is_backslash_escaped)
{
    for (size_t i = 0; i < length;) {
        const size_t n = gguf_printable_length(bytes + i, length - i);

        if (n == 0 || is_separator(bytes + i, n) || (bytes[i] == '\\' && is_backslash_escaped)) {
            write_byte(sink, bytes[i++]);
        } else {
            fs_sink_write(sink, bytes + i, n);
            i += n;
        }
    }
}
