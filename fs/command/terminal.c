#include "fs/command/terminal.h"

#include "gguf/support/safe_print.h"

#include <inttypes.h>
#include <stdarg.h>

void fs_print_error(const char *format, ...)
{
    va_list args;

    fputs("ggufs: ", stderr);
    va_start(args, format);
    gguf_vprint_safe_format(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

void fs_print_finding(FILE *stream, const char *prefix, const char *path,
                      const struct gguf_finding *finding)
{
    fputs(prefix, stream);
    gguf_print_safe_string(stream, finding->path ? finding->path : path);
    fputs(finding->severity == GGUF_NOTE ? ": note: " : ": ", stream);
    if (finding->file_offset != GGUF_NO_OFFSET)
        fprintf(stream, "byte %" PRIu64 ": ", finding->file_offset);
    gguf_print_safe_string(stream, finding->message);
    fputc('\n', stream);
}
