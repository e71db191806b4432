#include "fs/mount/requests.h"

#include "fs/mount/inodes.h"
#include "fs/mount/reply_buffer.h"
#include "fs/mount/session_io.h"
#include "gguf/support/source_location.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

/*
 * How long an interrupted reader waits for its data before EINTR, which readers of files do not
 * expect. EINTR is for killed readers that wait for a stalled disk.
 */
#define INTERRUPTED_SECONDS 1

enum { RUNNING, INTERRUPTED, REPLIED_EINTR, ENDED };

/*
 * A request that may take long, or never end: it computes for minutes, or it reads the model's
 * files, whose disk or network file system may stall. The thread that waits for a disk cannot reply
 * to a killed reader, so another thread does.
 */
struct pending {
    struct fs_server *server;
    fuse_req_t request;
    fs_node_index node;
    const struct fs_image *image; /* of the node, used by the answer; NULL: it is not open yet */
    pthread_t thread;
    atomic_int state;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all states */
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;

static const struct fs_image *image_of(const struct fuse_file_info *info)
{
    return (const struct fs_image *)(uintptr_t)info->fh;
}

static struct fs_shown *shown_of(const struct fs_image *image)
{
    return image->tree->user;
}

static void close_image(struct fs_server *server, const struct fs_image *image)
{
    struct fs_shown *shown = shown_of(image);

    fs_tree_close(shown->tree, image);
    fs_leave(server, shown);
}

/* Enter a tree, which has been entered already, once more. */
static void hold(struct fs_server *server, struct fs_shown *shown)
{
    if (server->set)
        fs_model_set_hold(server->set, shown->tree);
}

/* libfuse calls this; in the thread that answers, if the reader was interrupted before begin(). */
static void on_interrupt(fuse_req_t request, void *argument)
{
    struct pending *pending = argument;
    struct timespec due;
    int result = 0;

    if (pthread_equal(pending->thread, pthread_self())) {
        fs_session_repeat_interrupt(pending->server->session); /* to a thread that can wait */
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &due);
    due.tv_sec += INTERRUPTED_SECONDS;
    pthread_mutex_lock(&lock);
    pending->state = pending->state == RUNNING ? INTERRUPTED : pending->state;
    while (pending->state == INTERRUPTED && result == 0)
        result = pthread_cond_clockwait(&ended, &lock, CLOCK_MONOTONIC, &due);
    if (pending->state == INTERRUPTED && result == ETIMEDOUT) {
        if (pending->image) { /* it outlives its reader */
            hold(pending->server, shown_of(pending->image));
            fs_open_images_hold(&shown_of(pending->image)->tree->images, pending->image);
        }
        pending->state = REPLIED_EINTR;
        fuse_reply_err(request, EINTR);
    }
    pthread_mutex_unlock(&lock);
}

/* Return a request about an open file. */
static struct pending pending_of(fuse_req_t request, fuse_ino_t inode,
                                 const struct fuse_file_info *info)
{
    const struct fs_image *image = image_of(info);

    return (struct pending){.server = fs_server_of(request),
                            .request = request,
                            .node = fs_node_of_inode(shown_of(image), inode),
                            .image = image};
}

static void begin(struct pending *pending)
{
    pending->thread = pthread_self();
    fuse_req_interrupt_func(pending->request, on_interrupt, pending);
}

/*
 * The answer is known. Return true if the caller must reply. Otherwise the request has failed with
 * EINTR, and no longer exists in the kernel.
 */
static bool end(struct pending *pending)
{
    bool is_awaited;

    pthread_mutex_lock(&lock);
    is_awaited = atomic_exchange(&pending->state, ENDED) != REPLIED_EINTR;
    pthread_cond_broadcast(&ended);
    pthread_mutex_unlock(&lock);
    if (is_awaited) /* waits until on_interrupt(), if it runs, no longer needs `pending` */
        fuse_req_interrupt_func(pending->request, NULL, NULL);
    else if (pending->image)
        close_image(pending->server, pending->image);
    return is_awaited;
}

/* Return true if nobody waits for the answer any more. The condition of a struct fs_interrupt. */
static bool is_given_up(void *argument)
{
    const struct pending *pending = argument;

    /* At the end of the mount, all requests are given up, too. */
    return atomic_load_explicit(&pending->state, memory_order_relaxed) != RUNNING ||
           fuse_session_exited(pending->server->session);
}

/* ---- changes of the model's files ---- */

/* Call it before a reply, after which the reader may close the file. */
static bool note_changes(struct fs_server *server, struct fs_shown *shown)
{
    const bool are_new = fs_changes_are_new(&shown->changes);

    if (are_new)
        hold(server, shown);
    return are_new;
}

/* Call it after the reply. */
static void report_changes(struct fs_server *server, struct fs_shown *shown, bool are_new)
{
    if (!are_new)
        return;
    fs_changes_report(&shown->changes);
    fs_leave(server, shown);
}

/* ---- requests ---- */

static void fail(const struct pending *pending, struct fs_shown *shown, int result)
{
    fs_report_read_failure(pending->server, shown, pending->node, result);
    fuse_reply_err(pending->request, -result);
}

void fs_on_open(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
    struct fs_server *server = fs_server_of(request);
    struct pending pending = {.server = server, .request = request};
    const struct fs_image *image;
    struct fs_shown *shown;
    bool is_open, is_awaited, are_new;
    int result;

    if ((info->flags & O_ACCMODE) != O_RDONLY || (info->flags & O_TRUNC)) {
        fuse_reply_err(request, EROFS);
        return;
    }
    begin(&pending);
    result = fs_enter(server, inode, &shown);
    if (result < 0) {
        if (end(&pending))
            fuse_reply_err(request, -result);
        return;
    }
    pending.node = fs_node_of_inode(shown, inode);
    result = fs_tree_open(shown->tree, pending.node,
                          &(struct fs_interrupt){is_given_up, &pending, NULL}, &image);
    is_open = result == 0;
    if (is_open)
        result = fs_image_check(image);
    is_awaited = end(&pending);
    if (is_awaited && result < 0)
        fail(&pending, shown, result);
    if (!is_awaited || result < 0) {
        if (is_open)
            fs_tree_close(shown->tree, image);
        fs_leave(server, shown);
        return;
    }
    info->fh = (uintptr_t)image;
    /*
     * The kernel neither caches slow files nor reads them ahead: it does not report that the reader
     * of a cached file was interrupted. A list of models may have grown since the kernel was told
     * its size.
     */
    info->direct_io = server->options->direct_io || !shown->is_lasting || fs_image_is_slow(image);
    /* After a change, the kernel drops its cache of this file before the first read. */
    are_new = note_changes(server, shown);
    info->keep_cache = !are_new && server->options->keep_cache;
    info->noflush = 1;
    result = fuse_reply_open(request, info);
    /* If the reader was interrupted, there will be no release. */
    if (result == -ENOENT)
        close_image(server, image);
    report_changes(server, shown, are_new);
}

void fs_on_release(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
    close_image(fs_server_of(request), image_of(info));
    fuse_reply_err(request, 0);
}

void fs_on_read(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
                struct fuse_file_info *info)
{
    struct pending pending = pending_of(request, inode, info);
    struct fs_shown *shown = shown_of(pending.image);
    ssize_t done = -ENOMEM;
    bool are_new;
    char *data;

    begin(&pending);
    data = fs_reply_buffer_take(size, pending.server->options->kept_threads + 1);
    if (data)
        done =
            fs_image_read_interruptible(pending.image, (uint64_t)offset, size,
                                        &(struct fs_interrupt){is_given_up, &pending, NULL}, data);
    if (!end(&pending)) {
        fs_reply_buffer_give(data);
        return;
    }
    are_new = note_changes(pending.server, shown);
    if (done < 0) {
        fail(&pending, shown, (int)done);
    } else {
        atomic_fetch_add_explicit(&pending.server->activity->n_read_bytes, (uint64_t)done,
                                  memory_order_relaxed);
        fuse_reply_buf(request, data, (size_t)done);
    }
    fs_reply_buffer_give(data);
    report_changes(pending.server, shown, are_new);
}

/* Returns 0, -ENOTTY if the file is not a part of a model file, or a negative errno. */
static int locate(const struct fs_image *image, struct gguf_source_location *location)
{
    const struct gguf_file *file;
    struct gguf_file_status status;
    uint64_t offset;
    int result;

    if (!fs_image_is_of_source(image, &file, &offset) ||
        strlen(file->source.path) >= sizeof location->path)
        return -ENOTTY;
    result = fs_image_check(image);
    if (result == 0)
        result = gguf_file_get_mapped(file, &status);
    if (result < 0)
        return result == -ENODATA ? -ENOTTY : result;
    *location = (struct gguf_source_location){
        .offset = offset,
        .device = status.device,
        .inode = status.inode,
        .size_bytes = status.size_bytes,
        .modified_seconds = status.modified.tv_sec,
        .modified_nanoseconds = status.modified.tv_nsec,
    };
    memcpy(location->path, file->source.path, strlen(file->source.path) + 1);
    return 0;
}

void fs_on_ioctl(fuse_req_t request, fuse_ino_t inode, unsigned command, void *argument,
                 struct fuse_file_info *info, unsigned flags, const void *in, size_t in_size,
                 size_t out_size)
{
    struct gguf_source_location location;
    struct pending pending;
    struct fs_shown *shown;
    bool are_new;
    int result;

    (void)argument, (void)in, (void)in_size;
    if (command != GGUF_GET_SOURCE_LOCATION || (flags & FUSE_IOCTL_DIR) ||
        out_size != sizeof location) {
        fuse_reply_err(request, ENOTTY);
        return;
    }
    pending = pending_of(request, inode, info);
    shown = shown_of(pending.image);
    begin(&pending);
    result = locate(pending.image, &location);
    if (!end(&pending))
        return;
    are_new = note_changes(pending.server, shown);
    if (result == -ENOTTY)
        fuse_reply_err(request, ENOTTY);
    else if (result < 0)
        fail(&pending, shown, result);
    else
        fuse_reply_ioctl(request, 0, &location, sizeof location);
    report_changes(pending.server, shown, are_new);
}
