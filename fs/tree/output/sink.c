#include "fs/tree/output/sink.h"

#include "fs/tree/output/shortest.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* is_stopped() is called each time that so many bytes have been written. */
#define ASK_BYTES ((uint64_t)64 << 10)
/* The first size of a buffer that grows. */
#define FIRST_BYTES 512u
/* From here on a buffer grows in larger steps. */
#define LARGE_BYTES ((uint64_t)1 << 20)

void fs_sink_fail(struct fs_sink *sink, int error)
{
    if (sink->error == 0)
        sink->error = error;
    sink->to = 0;
}

static void ask(struct fs_sink *sink)
{
    if (!sink->is_stopped || sink->position - sink->asked < ASK_BYTES)
        return;
    sink->asked = sink->position;
    if (sink->is_stopped(sink->user))
        fs_sink_fail(sink, -EINTR);
}

/* Make room for `needed` bytes in a buffer that grows. */
static void grow(struct fs_sink *sink, uint64_t needed)
{
    uint64_t size = sink->size < FIRST_BYTES   ? FIRST_BYTES
                    : sink->size < LARGE_BYTES ? 2 * sink->size
                                               : 8 * sink->size;
    char *grown;

    if (size < needed)
        size = needed;
    if (size > sink->limit)
        size = sink->limit;
    grown = needed <= size ? realloc(sink->out, size) : NULL;
    if (!grown) {
        fs_sink_fail(sink, needed <= size ? -ENOMEM : -EFBIG);
        return;
    }
    sink->out = grown;
    sink->size = size;
}

void fs_sink_keep(struct fs_sink *sink, const void *bytes, size_t n)
{
    const uint64_t end = sink->position + n;

    ask(sink);
    if (sink->limit > 0 && sink->error == 0) {
        if (end > sink->size)
            grow(sink, end);
        /* Less than there is, so that is_stopped() is called in between. */
        if (sink->error == 0)
            sink->to = sink->size - end > ASK_BYTES ? end + ASK_BYTES : sink->size;
    }
    if (fs_sink_only_counts(sink) && sink->error == 0)
        sink->to = end + ASK_BYTES;
    if (n > 0 && sink->out && sink->position < sink->to) {
        const uint64_t room = sink->to - sink->position;

        memcpy(sink->out + sink->position, bytes, n < room ? n : room);
    }
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
    int length;

    va_start(args, format);
    length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (length > 0)
        fs_sink_write(sink, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}
