/*
 * A disk that fails, for tests: faulty FILE MOUNTPOINT
 *
 * Mounts a directory with two files: `model`, which is FILE read-only, and `control`, whose size is
 * the number of bytes of `model` that were read. Writes to `control` are commands:
 *
 *     FIRST END        reads of `model` that touch bytes FIRST to END - 1 fail with EIO
 *     0 0              no read fails
 *     hold             all reads wait for the next command
 *     hold FIRST END   only reads that touch these bytes wait
 *     stall            all requests wait, also for attributes, as on a server that is down
 *     vanish           all requests fail with EIO
 *
 * Requests that wait end with EINTR if the reader was killed. When the write returns, the kernel's
 * cache holds nothing of `model`. The program stays in the foreground and ends when it is unmounted
 * or gets a signal.
 */
#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MODEL = FUSE_ROOT_ID + 1, CONTROL };

static int source;
static struct fuse_session *session;
static pthread_mutex_t bad_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t let_go = PTHREAD_COND_INITIALIZER;
static enum { FAIL, HOLD, STALL, VANISH } mode;
static uint64_t bad_first, bad_end; /* for FAIL and HOLD */
static atomic_ullong n_read;

static bool is_bad(uint64_t first, uint64_t end)
{
    return first < bad_end && end > bad_first;
}

/* Wait as `control` says, then return 0 or the errno of a request for these bytes of the model. */
static int wait_for(fuse_req_t request, uint64_t first, uint64_t end)
{
    int result = 0;

    pthread_mutex_lock(&bad_lock);
    while ((mode == STALL || (mode == HOLD && is_bad(first, end))) &&
           !fuse_req_interrupted(request)) {
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += until.tv_nsec / 950000000;
        until.tv_nsec = (until.tv_nsec + 50000000) % 1000000000;
        pthread_cond_timedwait(&let_go, &bad_lock, &until);
    }
    if (mode == STALL || (mode == HOLD && is_bad(first, end)))
        result = EINTR;
    else if (mode == VANISH || (mode == FAIL && is_bad(first, end)))
        result = EIO;
    pthread_mutex_unlock(&bad_lock);
    return result;
}

static void on_init(void *data, struct fuse_conn_info *connection)
{
    /* No read-ahead: the test decides which bytes are read, and when. */
    connection->max_readahead = 0;
}

static struct stat status_of(fuse_ino_t inode)
{
    struct stat status = {0};

    if (inode == MODEL)
        fstat(source, &status);
    else if (inode == CONTROL)
        status.st_size = (off_t)n_read;
    status.st_ino = inode;
    status.st_mode = inode == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0644;
    status.st_nlink = inode == FUSE_ROOT_ID ? 2 : 1;
    return status;
}

static void on_getattr(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
    const struct stat status = status_of(inode);
    const int error = inode == MODEL ? wait_for(request, 0, 0) : 0;

    if (error)
        fuse_reply_err(request, error);
    else
        fuse_reply_attr(request, &status, 0);
}

/* Accept O_TRUNC on `control`. */
static void on_setattr(fuse_req_t request, fuse_ino_t inode, struct stat *changes, int which,
                       struct fuse_file_info *info)
{
    on_getattr(request, inode, info);
}

static void on_lookup(fuse_req_t request, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry = {0};

    if (parent == FUSE_ROOT_ID && strcmp(name, "model") == 0)
        entry.ino = MODEL;
    else if (parent == FUSE_ROOT_ID && strcmp(name, "control") == 0)
        entry.ino = CONTROL;
    entry.attr = status_of(entry.ino);
    fuse_reply_entry(request, &entry);
}

static void on_read(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
                    struct fuse_file_info *info)
{
    const int error =
        inode == MODEL ? wait_for(request, (uint64_t)offset, (uint64_t)offset + size) : EIO;
    char *data = malloc(size);
    const ssize_t done = data && !error ? pread(source, data, size, offset) : -1;

    n_read += done > 0 ? (unsigned long long)done : 0;
    if (done < 0)
        fuse_reply_err(request, error ? error : EIO);
    else
        fuse_reply_buf(request, data, (size_t)done);
    free(data);
}

static void on_write(fuse_req_t request, fuse_ino_t inode, const char *data, size_t size,
                     off_t offset, struct fuse_file_info *info)
{
    char text[64] = {0};
    uint64_t first = 0, end = 0;
    int new_mode = -1;

    if (inode == CONTROL && size < sizeof text)
        memcpy(text, data, size);
    if (strcmp(text, "stall") == 0)
        new_mode = STALL;
    else if (strcmp(text, "vanish") == 0)
        new_mode = VANISH;
    else if (sscanf(text, "%" SCNu64 " %" SCNu64, &first, &end) == 2)
        new_mode = FAIL;
    else if (sscanf(text, "hold %" SCNu64 " %" SCNu64, &first, &end) == 2)
        new_mode = HOLD;
    else if (strcmp(text, "hold") == 0) {
        new_mode = HOLD;
        end = UINT64_MAX;
    }
    if (new_mode < 0) {
        fuse_reply_err(request, EINVAL);
        return;
    }
    pthread_mutex_lock(&bad_lock);
    mode = (unsigned)new_mode;
    bad_first = first;
    bad_end = end;
    pthread_cond_broadcast(&let_go);
    pthread_mutex_unlock(&bad_lock);
    fuse_lowlevel_notify_inval_inode(session, MODEL, 0, 0);
    fuse_reply_write(request, size);
}

static const struct fuse_lowlevel_ops requests = {
    .init = on_init,
    .lookup = on_lookup,
    .getattr = on_getattr,
    .setattr = on_setattr,
    .read = on_read,
    .write = on_write,
};

int main(int argc, char **argv)
{
    struct fuse_args args = FUSE_ARGS_INIT(1, argv);
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    int result = -1;

    if (argc != 3 || !config) {
        fprintf(stderr, "usage: faulty FILE MOUNTPOINT\n");
        return 64;
    }
    source = open(argv[1], O_RDONLY | O_CLOEXEC);
    if (source < 0) {
        perror(argv[1]);
        return 1;
    }
    session = fuse_session_new(&args, &requests, sizeof requests, NULL);
    if (session && fuse_set_signal_handlers(session) == 0 &&
        fuse_session_mount(session, argv[2]) == 0) {
        /* A held read must not block others, nor the write that releases it. */
        fuse_loop_cfg_set_max_threads(config, 1000);
        result = fuse_session_loop_mt(session, config);
        fuse_session_unmount(session);
        if (result == -ECONNABORTED)
            result = 0; /* unmounted while a thread was taking a request */
    }
    if (session)
        fuse_session_destroy(session);
    fuse_loop_cfg_destroy(config);
    return result < 0;
}
