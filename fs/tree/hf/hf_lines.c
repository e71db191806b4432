#include "fs/tree/hf/hf_lines.h"

#include <stdarg.h>
#include <stdio.h>

int fs_hf_add_line(struct gguf_buffer *lines, const char *format, ...)
{
    char line[512];
    va_list args;

    if (lines->length > 65536)
        return 0;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    return gguf_buffer_add_string(lines, line);
}
