#include "contrib/runner/cli/escapes.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void run_unescape(char *text)
{
    static const char escapes[] = "nrt\\'\"", bytes[] = "\n\r\t\\'\"";
    char *end = text;

    while (*text != '\0') {
        const char *escape = *text == '\\' && text[1] != '\0' ? strchr(escapes, text[1]) : NULL;

        if (escape) {
            *end++ = bytes[escape - escapes];
            text += 2;
        } else if (text[0] == '\\' && text[1] == 'x' && isxdigit((unsigned char)text[2]) &&
                   isxdigit((unsigned char)text[3]) && (text[2] != '0' || text[3] != '0')) {
            const char digits[] = {text[2], text[3], '\0'};

            *end++ = (char)strtoul(digits, NULL, 16);
            text += 4;
        } else {
            *end++ = *text++;
        }
    }
    *end = '\0';
}
