#include "fs/tree/sink.h"

#include "fs/tree/shortest.h"

#include <stdarg.h>
#include <stdio.h>

void fs_sink_cut(struct fs_sink *sink, const void *bytes, size_t n)
{
    const uint64_t end = sink->position + n;
    const uint64_t from = sink->position > sink->from ? sink->position : sink->from;
    const uint64_t to = end < sink->to ? end : sink->to;

    if (from < to)
        memcpy(sink->out + (from - sink->from), (const char *)bytes + (from - sink->position),
               (size_t)(to - from));
}

void fs_sink_unsigned(struct fs_sink *sink, uint64_t number)
{
    char text[FS_NUMBER_BYTES];

    fs_sink_write(sink, text, fs_write_unsigned(number, text));
}

void fs_sink_print(struct fs_sink *sink, const char *format, ...)
{
    char text[1024];
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n > 0)
        fs_sink_write(sink, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}
