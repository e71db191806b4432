/*
 * Counts the requests and bytes of a mount. The figures are in memory that the server shares with
 * its keeper, which unmounts idle trees. A hostile model may have taken over the server, so the
 * keeper checks what it reads. Any thread may call these functions.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

struct fs_activity {
    int64_t started;              /* milliseconds of CLOCK_BOOTTIME */
    _Atomic int64_t last_request; /* likewise, time of the last use of the tree */
    _Atomic uint64_t n_requests;
    _Atomic uint64_t n_read_bytes; /* contents of files */
};

/*
 * Map zeroed counts, shared with processes forked later, for as long as the process lives. Returns
 * NULL with errno set.
 */
struct fs_activity *fs_activity_map(void);

/*
 * Count a request; `opcode` is from linux/fuse.h. All requests but FUSE_GETXATTR, which `ggufs
 * --status` sends, and the FORGETs of the kernel's cache count as a use of the tree.
 */
void fs_activity_note(struct fs_activity *activity, uint32_t opcode);

/* Return the whole seconds since the mount started, or since the last use of the tree. */
uint64_t fs_activity_seconds_since(int64_t then);
