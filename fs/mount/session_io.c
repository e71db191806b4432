#include "fs/mount/session_io.h"

#include "fs/mount/server.h"
#include "gguf/support/thread_start.h"

#include <errno.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <sysexits.h>
#include <unistd.h>

#ifndef FUSE_DIRECT_IO_ALLOW_MMAP
#define FUSE_DIRECT_IO_ALLOW_MMAP (1ull << 36) /* Linux 6.6; older kernels ignore it */
#endif

/* Time for the threads to end after the file system was unmounted. */
#define END_SECONDS 5

static atomic_bool is_init_answered;
static _Thread_local uint64_t last_request;

/* Add flags that libfuse omits to the answer to INIT, the first request. */
static void complete_init(const struct iovec *parts, int n_parts)
{
    struct fuse_init_out *answer;

    if (n_parts != 2 || parts[1].iov_len < FUSE_COMPAT_22_INIT_OUT_SIZE)
        return; /* an error reply */
    answer = parts[1].iov_base;
    answer->flags |= FUSE_PARALLEL_DIROPS;
    if (!(answer->flags & FUSE_INIT_EXT) || parts[1].iov_len < sizeof *answer)
        return;
    answer->flags2 |= FUSE_DIRECT_IO_ALLOW_MMAP >> 32;
}

static ssize_t write_reply(int descriptor, struct iovec *parts, int n_parts, void *user)
{
    if (!atomic_load_explicit(&is_init_answered, memory_order_relaxed)) {
        complete_init(parts, n_parts);
        atomic_store_explicit(&is_init_answered, true, memory_order_relaxed);
    }
    return writev(descriptor, parts, n_parts);
}

/* ---- the end ---- */

static void *end_process(void *argument)
{
    sleep(END_SECONDS);
    _exit(EX_OK);
}

/*
 * libfuse waits for all its threads, also for one that reads from a disk that stalls and may never
 * come back. Nobody needs its answer when the file system is unmounted.
 */
static void end_in_time(void)
{
    static atomic_flag is_started = ATOMIC_FLAG_INIT;
    pthread_t thread;

    if (!atomic_flag_test_and_set(&is_started) &&
        gguf_thread_start(&thread, end_process, NULL) == 0)
        pthread_detach(thread);
}

static ssize_t read_request(int descriptor, void *request, size_t room, void *user)
{
    const struct fs_server *server = user;
    const struct fuse_in_header *header = request;
    const ssize_t n_bytes = read(descriptor, request, room);

    if (n_bytes >= (ssize_t)sizeof *header) {
        fs_activity_note(server->activity, header->opcode);
        last_request = header->unique;
    }
    /* ECONNABORTED: unmounted while this thread was taking a request. libfuse knows only ENODEV as
     * the end. */
    if (n_bytes < 0 && (errno == ENODEV || errno == ECONNABORTED)) {
        end_in_time();
        errno = ENODEV;
    }
    return n_bytes;
}

int fs_session_serve(struct fuse_session *session, int fuse_descriptor)
{
    static const struct fuse_custom_io io = {.writev = write_reply, .read = read_request};

    return fuse_session_custom_io(session, &io, fuse_descriptor);
}

/* As "Interrupting filesystem operations" in the kernel's documentation of FUSE says. */
int fs_session_repeat_interrupt(struct fuse_session *session)
{
    /* The interrupt of a request has this number since Linux 5.0. */
    const struct fuse_out_header answer = {sizeof answer, -EAGAIN, last_request | 1};

    return write(fuse_session_fd(session), &answer, sizeof answer) < 0 ? -errno : 0;
}

int fs_session_answer_init(struct fuse_session *session)
{
    struct fuse_buf request = {0};
    int result;

    do
        result = fuse_session_receive_buf(session, &request);
    while (result == -EINTR);
    if (result > 0)
        fuse_session_process_buf(session, &request);
    free(request.mem);
    return result < 0 ? result : 0;
}
