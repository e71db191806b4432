#include "fs/mount/session_io.h"

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include <linux/fuse.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef FUSE_DIRECT_IO_ALLOW_MMAP
#define FUSE_DIRECT_IO_ALLOW_MMAP (1ull << 36) /* Linux 6.6; older kernels ignore it */
#endif

static atomic_bool is_init_answered;

/* Add flags that libfuse omits to the answer to INIT, the first request. */
static void complete_init(const struct iovec *parts, int n_parts)
{
    struct fuse_init_out *answer;

    if (n_parts != 2 || parts[1].iov_len < FUSE_COMPAT_22_INIT_OUT_SIZE)
        return; /* an error reply */
    answer = parts[1].iov_base;
    answer->flags |= FUSE_PARALLEL_DIROPS;
    if ((answer->flags & FUSE_INIT_EXT) &&
        parts[1].iov_len >= offsetof(struct fuse_init_out, unused))
        answer->flags2 |= FUSE_DIRECT_IO_ALLOW_MMAP >> 32;
}

static ssize_t write_reply(int descriptor, struct iovec *parts, int n_parts, void *user)
{
    (void)user;
    if (!atomic_load_explicit(&is_init_answered, memory_order_relaxed)) {
        complete_init(parts, n_parts);
        atomic_store_explicit(&is_init_answered, true, memory_order_relaxed);
    }
    return writev(descriptor, parts, n_parts);
}

static ssize_t read_request(int descriptor, void *request, size_t room, void *user)
{
    (void)user;
    return read(descriptor, request, room);
}

int fs_session_serve(struct fuse_session *session, int fuse_descriptor)
{
    static const struct fuse_custom_io io = {.writev = write_reply, .read = read_request};

    return fuse_session_custom_io(session, &io, fuse_descriptor);
}
