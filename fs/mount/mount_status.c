#include "fs/mount/mount_status.h"

#include <inttypes.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

static void write_number(struct fs_sink *sink, const char *name, uint64_t number)
{
    fs_sink_print(sink, "%s %" PRIu64 "\n", name, number);
}

void fs_mount_status_write(const struct fs_server *server, struct fs_sink *sink)
{
    const struct fs_activity *activity = server->activity;

    fs_sink_print(sink, "version %s\n", GGUFS_VERSION);
    write_number(sink, "pid", (uint64_t)getpid());
    write_number(sink, "uptime_seconds", fs_activity_uptime_seconds(activity));
    write_number(sink, "idle_seconds", fs_activity_idle_seconds(activity));
    write_number(sink, "timeout_seconds", server->timeout_seconds);
    write_number(sink, "requests", activity->n_requests);
    write_number(sink, "read_bytes", activity->n_read_bytes);
    write_number(sink, "read_failures", server->failures.n);
#ifdef __GLIBC__
    {
        const struct mallinfo2 memory = mallinfo2();

        /* Blocks in use: the copied metadata, the tree, caches, buffers of replies. */
        write_number(sink, "memory_bytes", memory.uordblks + memory.hblkhd);
    }
#endif
}
