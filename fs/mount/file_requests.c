#include "fs/mount/requests.h"

#include "fs/mount/reply_buffer.h"
#include "fs/mount/inodes.h"
#include "gguf/support/source_location.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static const struct fs_image *image_of(const struct fuse_file_info *info)
{
    return (const struct fs_image *)(uintptr_t)info->fh;
}

static void fail(struct fs_shown *shown, const struct fs_slow_request *slow, int result)
{
    fs_report_read_failure(&shown->failures, fs_node_of_inode(shown, slow->inode), result);
    fuse_reply_err(slow->request, -result);
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

/* Take what the answer to a read uses, so that it outlives the reader. It is open already. */
static void hold_image(struct fs_slow_request *slow)
{
    struct fs_shown *shown = shown_of(image_of(&slow->info));
    const struct fs_image *image;

    if (slow->server->set)
        fs_model_set_hold(slow->server->set, shown->tree);
    fs_tree_open(shown->tree, fs_node_of_inode(shown, slow->inode), NULL, &image);
}

static void answer_open(struct fs_slow_request *slow)
{
    struct fs_server *server = slow->server;
    struct fs_shown *shown = slow->shown;
    struct fuse_file_info *info = &slow->info;
    const struct fs_interrupt interrupt = {.check = fs_slow_request_is_given_up, .user = slow};
    const struct fs_image *image;
    int result =
        fs_tree_open(shown->tree, fs_node_of_inode(shown, slow->inode), &interrupt, &image);
    const bool is_open = result == 0;
    bool is_awaited;

    if (is_open)
        result = fs_image_check(image);
    is_awaited = fs_slow_request_end(slow);
    if (is_awaited && result < 0)
        fail(shown, slow, result);
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
    info->keep_cache = !fs_changes_notice(&shown->changes) && server->options->keep_cache;
    info->noflush = 1;
    result = fuse_reply_open(slow->request, info);
    /* If the reader was interrupted, there will be no release. */
    if (result == -ENOENT)
        close_image(server, image);
}

void fs_on_open(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
    struct fs_server *server = fs_server_of(request);
    struct fs_slow_request slow = {
        .server = server, .request = request, .inode = inode, .info = *info, .answer = answer_open};
    const struct fs_view *view;
    int result = fs_enter(server, inode, &slow.shown);

    if (result == 0 && ((info->flags & O_ACCMODE) != O_RDONLY || (info->flags & O_TRUNC))) {
        fs_leave(server, slow.shown);
        result = -EROFS;
    }
    if (result < 0) {
        fuse_reply_err(request, -result);
        return;
    }
    view = fs_inode_node(slow.shown, inode)->view;
    if (view && view->is_slow)
        fs_request_workers_add(&server->workers, &slow);
    else
        fs_request_workers_answer(&server->workers, &slow);
}

void fs_on_release(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
    (void)inode;
    close_image(fs_server_of(request), image_of(info));
    fuse_reply_err(request, 0);
}

static void answer_read(struct fs_slow_request *slow)
{
    struct fs_server *server = slow->server;
    const struct fs_interrupt interrupt = {.check = fs_slow_request_is_given_up, .user = slow};
    const struct fs_image *image = image_of(&slow->info);
    struct fs_shown *shown = shown_of(image);
    char *data = fs_reply_buffer(slow->size);
    const ssize_t done = data ? fs_image_read_interruptible(image, (uint64_t)slow->offset,
                                                            slow->size, &interrupt, data)
                              : -ENOMEM;

    /* Before the reader can close the file. */
    fs_changes_notice(&shown->changes);
    if (!fs_slow_request_end(slow)) {
        close_image(server, image); /* hold_image() took it */
    } else if (done < 0) {
        fail(shown, slow, (int)done);
    } else {
        atomic_fetch_add_explicit(&server->activity->n_read_bytes, (uint64_t)done,
                                  memory_order_relaxed);
        fuse_reply_buf(slow->request, data, (size_t)done);
    }
}

void fs_on_read(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
                struct fuse_file_info *info)
{
    struct fs_server *server = fs_server_of(request);
    const struct fs_slow_request slow = {.server = server,
                                         .request = request,
                                         .inode = inode,
                                         .size = size,
                                         .offset = offset,
                                         .info = *info,
                                         .answer = answer_read,
                                         .hold = hold_image};

    if (fs_image_is_slow(image_of(info)))
        fs_request_workers_add(&server->workers, &slow);
    else
        fs_request_workers_answer(&server->workers, &slow);
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

static void answer_locate(struct fs_slow_request *slow)
{
    const struct fs_image *image = image_of(&slow->info);
    struct fs_shown *shown = shown_of(image);
    struct gguf_source_location location;
    const int result = locate(image, &location);

    fs_changes_notice(&shown->changes);
    if (!fs_slow_request_end(slow))
        close_image(slow->server, image); /* hold_image() took it */
    else if (result == -ENOTTY)
        fuse_reply_err(slow->request, ENOTTY);
    else if (result < 0)
        fail(shown, slow, result);
    else
        fuse_reply_ioctl(slow->request, 0, &location, sizeof location);
}

void fs_on_ioctl(fuse_req_t request, fuse_ino_t inode, unsigned command, void *argument,
                 struct fuse_file_info *info, unsigned flags, const void *in, size_t in_size,
                 size_t out_size)
{
    struct fs_server *server = fs_server_of(request);
    const struct fs_slow_request slow = {.server = server,
                                         .request = request,
                                         .inode = inode,
                                         .info = *info,
                                         .answer = answer_locate,
                                         .hold = hold_image};

    (void)argument, (void)in, (void)in_size;
    if (command == GGUF_GET_SOURCE_LOCATION && !(flags & FUSE_IOCTL_DIR) &&
        out_size == sizeof(struct gguf_source_location))
        fs_request_workers_answer(&server->workers, &slow);
    else
        fuse_reply_err(request, ENOTTY);
}
