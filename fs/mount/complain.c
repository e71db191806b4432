#include "fs/mount/complain.h"

#include "gguf/support/safe_print.h"

#include <stdarg.h>
#include <stdio.h>

void fs_complain(const char *path, const char *command, const char *format, ...)
{
    va_list args;

    fputs("ggufs: ", stderr);
    gguf_print_safe_string(stderr, path);
    fputs(": ", stderr);
    va_start(args, format);
    gguf_vprint_safe_format(stderr, format, args);
    va_end(args);
    if (command) {
        fprintf(stderr, ": %s ", command);
        gguf_print_shell_word(stderr, path);
    }
    fputc('\n', stderr);
}
