#include "fs/mount/request_log.h"

#include "fs/mount/log.h"
#include "fs/mount/request_nodes.h"

#include <stdlib.h>

#define SLOW_SECONDS 1.0

struct fs_request_origin fs_request_origin(fuse_req_t request)
{
    struct fs_request_origin origin = {0};

    if (fs_log_is_wanted(FS_LOG_OPENED)) {
        origin.reader = fuse_req_ctx(request)->pid;
        clock_gettime(CLOCK_MONOTONIC, &origin.time);
    }
    return origin;
}

static double seconds_since(const struct timespec *start)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) + (double)(now.tv_nsec - start->tv_nsec) / 1e9;
}

void fs_request_log(const struct fs_slow_request *slow, bool is_opening)
{
    const struct fs_request_origin *origin = &slow->origin;
    struct fs_log_about about = {.event = FS_LOG_OPENED, .reader = origin->reader};
    double seconds;
    char *path;

    if (!fs_log_is_wanted(FS_LOG_OPENED))
        return;
    seconds = seconds_since(&origin->time);
    if (!is_opening && seconds < SLOW_SECONDS)
        return;
    path = fs_nodes_path(&slow->server->tree->nodes, fs_node_of_inode(slow->server, slow->inode));
    if (path) {
        about.file = path;
        if (is_opening)
            fs_log(&about, "process %d opened %s", (int)origin->reader, path);
        about.event = FS_LOG_SLOW;
        if (seconds >= SLOW_SECONDS)
            fs_log(&about, "process %d waited %.1f seconds for %s of %s", (int)origin->reader,
                   seconds, is_opening ? "the opening" : "a read", path);
    }
    free(path);
}
