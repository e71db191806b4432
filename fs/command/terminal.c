#include "fs/command/terminal.h"

#include "gguf/support/safe_print.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

void fs_print_error(const char *format, ...)
{
    va_list args;

    fputs("ggufs: ", stderr);
    va_start(args, format);
    gguf_vprint_safe_format(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

int fs_refuse_memory(void)
{
    fs_print_error("%s", strerror(ENOMEM));
    return EX_OSERR;
}

int fs_print_written(void (*write)(const void *subject, struct fs_sink *sink), const void *subject)
{
    struct fs_sink sink = fs_sink_that_grows(UINT64_MAX);

    write(subject, &sink);
    if (sink.error == 0)
        fwrite(sink.out, 1, sink.position, stdout);
    free(sink.out);
    return sink.error;
}
