#include "fs/tree/sink.h"

void fs_sink_cut(struct fs_sink *sink, const void *bytes, size_t n)
{
    const uint64_t end = sink->position + n;
    const uint64_t from = sink->position > sink->from ? sink->position : sink->from;
    const uint64_t to = end < sink->to ? end : sink->to;

    if (from < to)
        memcpy(sink->out + (from - sink->from), (const char *)bytes + (from - sink->position),
               (size_t)(to - from));
}
