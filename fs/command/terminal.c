#include "fs/command/terminal.h"

#include "gguf/support/safe_print.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sysexits.h>

/* Columns for names; longer ones move the rest of their line. */
#define MAX_NAME_COLUMNS 60

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

int fs_name_columns(int columns, struct gguf_string name)
{
    return MAX(columns, (int)MIN(name.length_bytes, MAX_NAME_COLUMNS));
}

void fs_print_name(struct gguf_string name, int columns)
{
    gguf_print_safe(stdout, name.data, name.length_bytes);
    printf("%*s", MAX(columns - (int)name.length_bytes, 0), "");
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
