#include "fs/mount/file_requests.h"

#include "fs/mount/passthrough.h"
#include "fs/mount/reply_buffer.h"
#include "fs/mount/request_nodes.h"
#include "fs/tree/views.h"
#include "gguf/support/source_location.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static void answer_open(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
    struct fs_server *server = fs_server_of(request);
    const struct fs_interrupt interrupt = {fs_is_request_given_up, request};
    const struct fs_image *image;
    int result = fs_tree_open(server->tree, fs_node_of_inode(server, inode), &interrupt, &image);

    if (result == 0) {
        result = fs_image_check(image);
        if (result < 0)
            fs_tree_close(server->tree, image);
    }
    if (result < 0) {
        fs_report_read_failure(&server->failures, fs_node_of_inode(server, inode), result);
        fuse_reply_err(request, -result);
        return;
    }
    info->fh = (uintptr_t)image;
    /*
     * What is slow is neither cached nor read ahead by the kernel, which also would not say that
     * the reader of a cached file was interrupted.
     */
    info->direct_io = server->direct_io || fs_image_is_slow(image);
    /* After a change, the kernel drops its cache of this file before the first read. */
    info->keep_cache = !fs_changes_notice(&server->changes) && server->keep_cache;
    info->noflush = 1;
    if (fs_passthrough_fits(server, image))
        result = fs_passthrough_reply_open(request, info->fh, server->passthrough_id,
                                           (info->flags & O_DIRECT) != 0);
    else
        result = fuse_reply_open(request, info);
    /* If the reader was interrupted, there will be no release. */
    if (result == -ENOENT)
        fs_tree_close(server->tree, image);
}

static void answer_slow_open(struct fs_slow_request *slow)
{
    answer_open(slow->request, slow->inode, &slow->info);
}

void fs_on_open(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
    struct fs_server *server = fs_server_of(request);
    const struct fs_view *view = fs_inode_node(server, inode)->view;
    const struct fs_slow_request slow = {request, inode, 0, 0, *info, answer_slow_open};

    if ((info->flags & O_ACCMODE) != O_RDONLY || (info->flags & O_TRUNC))
        fuse_reply_err(request, EROFS);
    else if (view && view->is_slow)
        fs_slow_requests_add(&server->slow, &slow);
    else
        answer_open(request, inode, info);
}

void fs_on_release(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
    (void)inode;
    fs_tree_close(fs_server_of(request)->tree, (const struct fs_image *)(uintptr_t)info->fh);
    fuse_reply_err(request, 0);
}

static void answer_read(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
                        const struct fuse_file_info *info)
{
    struct fs_server *server = fs_server_of(request);
    const struct fs_interrupt interrupt = {fs_is_request_given_up, request};
    const struct fs_image *image = (const struct fs_image *)(uintptr_t)info->fh;
    char *data = fs_reply_buffer(size);
    ssize_t done;

    if (!data) {
        fuse_reply_err(request, ENOMEM);
        return;
    }
    done = fs_image_read_interruptible(image, (uint64_t)offset, size, &interrupt, data);
    if (done < 0) {
        fs_report_read_failure(&server->failures, fs_node_of_inode(server, inode), (int)done);
        fuse_reply_err(request, (int)-done);
    } else {
        fuse_reply_buf(request, data, (size_t)done);
    }
    fs_changes_notice(&server->changes);
}

static void answer_slow_read(struct fs_slow_request *slow)
{
    answer_read(slow->request, slow->inode, slow->size, slow->offset, &slow->info);
}

void fs_on_read(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
                struct fuse_file_info *info)
{
    const struct fs_slow_request slow = {request, inode, size, offset, *info, answer_slow_read};

    if (fs_image_is_slow((const struct fs_image *)(uintptr_t)info->fh))
        fs_slow_requests_add(&fs_server_of(request)->slow, &slow);
    else
        answer_read(request, inode, size, offset, info);
}

/* Returns 0, -ENOTTY if the file is not a part of a model file, or a negative errno. */
static int locate(const struct fs_image *image, struct gguf_source_location *location)
{
    const struct gguf_source *source;
    struct gguf_file_status status;
    uint64_t offset;
    int result;

    if (!fs_image_is_of_source(image, &source, &offset) ||
        strlen(source->path) >= sizeof location->path)
        return -ENOTTY;
    result = fs_image_check(image);
    if (result == 0)
        result = gguf_source_get_file(source, &status);
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
    memcpy(location->path, source->path, strlen(source->path) + 1);
    return 0;
}

void fs_on_ioctl(fuse_req_t request, fuse_ino_t inode, unsigned command, void *argument,
                 struct fuse_file_info *info, unsigned flags, const void *in, size_t in_size,
                 size_t out_size)
{
    struct fs_server *server = fs_server_of(request);
    struct gguf_source_location location;
    int result = -ENOTTY;

    (void)argument, (void)in, (void)in_size;
    if (command == GGUF_GET_SOURCE_LOCATION && !(flags & FUSE_IOCTL_DIR) &&
        out_size == sizeof location)
        result = locate((const struct fs_image *)(uintptr_t)info->fh, &location);
    if (result < 0 && result != -ENOTTY)
        fs_report_read_failure(&server->failures, fs_node_of_inode(server, inode), result);
    if (result < 0)
        fuse_reply_err(request, -result);
    else
        fuse_reply_ioctl(request, 0, &location, sizeof location);
    fs_changes_notice(&server->changes);
}
