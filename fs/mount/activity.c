#include "fs/mount/activity.h"

#include <linux/fuse.h>
#include <sys/mman.h>
#include <time.h>

static int64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_BOOTTIME, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

uint64_t fs_activity_seconds_since(int64_t then)
{
    const int64_t time = now();

    return then > 0 && then < time ? (uint64_t)(time - then) / 1000 : 0;
}

struct fs_activity *fs_activity_map(void)
{
    void *memory = mmap(NULL, sizeof(struct fs_activity), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct fs_activity *activity = memory;

    if (memory == MAP_FAILED)
        return NULL;
    activity->started = now();
    activity->last_request = activity->started;
    return activity;
}

void fs_activity_note(struct fs_activity *activity, uint32_t opcode)
{
    const int64_t time = now();

    atomic_fetch_add_explicit(&activity->n_requests, 1, memory_order_relaxed);
    if (opcode == FUSE_GETXATTR || opcode == FUSE_FORGET || opcode == FUSE_BATCH_FORGET)
        return;
    if (atomic_load_explicit(&activity->last_request, memory_order_relaxed) != time)
        atomic_store_explicit(&activity->last_request, time, memory_order_relaxed);
}
