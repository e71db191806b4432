#include "contrib/runner/cli/messages.h"

#include "gguf/support/safe_print.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/* Longer messages are truncated. */
#define MESSAGE_BYTES 8192

void run_message(const char *format, ...)
{
    char text[MESSAGE_BYTES];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fputs("ggufs-run: ", stderr);
    gguf_print_safe_string(stderr, text);
    fputc('\n', stderr);
}

void run_message_progress(const char *format, ...)
{
    va_list arguments;

    if (!isatty(STDERR_FILENO))
        return;
    va_start(arguments, format);
    fputs("\r\033[K", stderr);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fflush(stderr);
}
