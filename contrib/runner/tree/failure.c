#include "contrib/runner/tree/failure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int run_fail_at(struct run_failure *failure, bool is_elsewhere, int code, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    /* cppcheck-suppress ctuuninitvar ; it is only written to */
    vsnprintf(failure->text, sizeof failure->text, format, arguments);
    va_end(arguments);
    failure->is_elsewhere = is_elsewhere;
    return code;
}

int run_fail_memory(struct run_failure *failure)
{
    return run_fail(failure, -ENOMEM, "out of memory");
}
