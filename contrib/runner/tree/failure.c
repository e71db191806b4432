#include "contrib/runner/tree/failure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int run_fail(struct run_failure *failure, int code, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    /* cppcheck-suppress ctuuninitvar ; it is only written to */
    vsnprintf(failure->text, sizeof failure->text, format, arguments);
    va_end(arguments);
    for (unsigned char *c = (unsigned char *)failure->text; *c != '\0'; c++) {
        if (*c < 0x20 || *c == 0x7f)
            *c = '?';
        else if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f) /* U+0080 to U+009F */
            c[0] = c[1] = '?';
    }
    return code;
}

int run_fail_memory(struct run_failure *failure)
{
    return run_fail(failure, -ENOMEM, "out of memory");
}
