#include "fs/tree/hf/hf_lines.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int fs_hf_add_line(struct gguf_buffer *lines, const char *format, ...)
{
    char *line;
    int result, n;
    va_list args;

    if (lines->length > 65536)
        return 0;
    va_start(args, format);
    n = vasprintf(&line, format, args);
    va_end(args);
    if (n < 0)
        return -ENOMEM;
    result = gguf_buffer_add(lines, line, (size_t)n);
    free(line);
    return result;
}
