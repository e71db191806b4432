#include "contrib/runner/cli/messages.h"

#include "gguf/support/safe_print.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Longer messages are cut. */
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

static void print_lines(const char *bytes, size_t length)
{
    while (length > 0) {
        size_t n = 0;

        while (n < length && bytes[n] != '\n' && bytes[n] != '\t')
            n++;
        gguf_print_safe(stdout, bytes, n);
        if (n < length)
            putchar(bytes[n++]);
        bytes += n;
        length -= n;
    }
}

int run_write_text(const char *bytes, size_t length)
{
    if (length == 0)
        return 0;
    errno = EIO; /* in case that an earlier write failed */
    if (isatty(STDOUT_FILENO))
        print_lines(bytes, length);
    else
        fwrite(bytes, 1, length, stdout);
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : -errno;
}
