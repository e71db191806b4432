#include "fs/mount/requests.h"

#include "fs/mount/attach.h"
#include "fs/mount/inodes.h"
#include "fs/tree/attributes.h"
#include "fs/tree/nodes.h"
#include "fs/tree/views.h"
#include "gguf/support/source_location.h"

#include <fuse_lowlevel.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>

/* Seconds. The kernel's cache stays valid until fs/mount/changes.c invalidates it. */
#define FOREVER 1e9

static struct fs_server *server_of(fuse_req_t request)
{
    return fuse_req_userdata(request);
}

/* FUSE's root is inode 1. */
static fs_node_index index_of(fuse_ino_t inode)
{
    return (fs_node_index)(inode - FUSE_ROOT_ID);
}

static fuse_ino_t inode_of(fs_node_index index)
{
    return (fuse_ino_t)index + FUSE_ROOT_ID;
}

static const struct fs_node *node_of(const struct fs_server *server, fuse_ino_t inode)
{
    return &server->tree->nodes.list[index_of(inode)];
}

static mode_t mode_of(const struct fs_server *server, const struct fs_node *node)
{
    if (node->kind == FS_LINK)
        return S_IFLNK | 0777; /* the target's mode decides */
    return (node->kind == FS_FILE ? S_IFREG | 0444 : S_IFDIR | 0555) & server->mode_mask;
}

/* At the end of the mount, all requests are given up, too. */
static bool is_interrupted(void *request)
{
    return fuse_req_interrupted(request) ||
           fuse_session_exited(server_of(request)->changes.session);
}

/* Returns 0 or a negative errno. */
static int get_status(fuse_req_t request, fs_node_index index, struct stat *status)
{
    struct fs_server *server = server_of(request);
    const struct fs_node *node = &server->tree->nodes.list[index];
    const struct fs_interrupt interrupt = {is_interrupted, request};
    const struct timespec modified = fs_changes_modified(&server->changes);
    uint64_t size_bytes;
    int result = fs_tree_size(server->tree, index, &interrupt, &size_bytes);

    if (result < 0) {
        fs_report_read_failure(&server->failures, index, result);
        return result;
    }
    *status = (struct stat){
        .st_ino = inode_of(index),
        .st_mode = mode_of(server, node),
        .st_nlink = fs_node_is_directory(node) ? 2 + node->n_folders : 1,
        .st_uid = server->uid,
        .st_gid = server->gid,
        .st_size = (off_t)size_bytes,
        .st_blocks = (blkcnt_t)((size_bytes + 511) / 512),
        .st_atim = modified,
        .st_mtim = modified,
        .st_ctim = modified,
    };
    return 0;
}

static int get_entry(fuse_req_t request, fs_node_index index, struct fuse_entry_param *entry)
{
    *entry = (struct fuse_entry_param){.ino = inode_of(index),
                                       .generation =
                                           index == FS_ROOT ? 0 : server_of(request)->generation,
                                       .attr_timeout = FOREVER,
                                       .entry_timeout = FOREVER};
    return get_status(request, index, &entry->attr);
}

static void on_init(void *data, struct fuse_conn_info *connection)
{
    const struct fs_server *server = data;

    connection->max_read = server->max_read;
    /* No more than fs_attach() has set in the kernel. */
    connection->max_readahead = FS_READ_AHEAD_BYTES;
    connection->want |= connection->capable & FUSE_CAP_EXPORT_SUPPORT; /* see inodes.h */
    /* Nothing is ever written, so there is nothing to write back or to truncate. */
    connection->want &= ~(unsigned)(FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_ATOMIC_O_TRUNC);
    /* Splicing goes through pipes, which is slower than copying here and takes more calls. */
    connection->want &=
        ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
}

static void on_lookup(fuse_req_t request, fuse_ino_t parent, const char *name)
{
    struct fs_server *server = server_of(request);
    /* Inode 0: the kernel remembers that there is no such name. */
    struct fuse_entry_param entry = {.entry_timeout = FOREVER};
    fs_node_index index;
    int result = fs_inodes_lookup(&server->tree->nodes, parent, name, &index);

    if (result == 0 && index != FS_NO_NODE)
        result = get_entry(request, index, &entry);
    if (result < 0)
        fuse_reply_err(request, -result);
    else
        fuse_reply_entry(request, &entry);
}

static void on_getattr(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
    struct stat status;
    const int result = get_status(request, index_of(inode), &status);

    (void)info;
    if (result < 0)
        fuse_reply_err(request, -result);
    else
        fuse_reply_attr(request, &status, FOREVER);
}

static void on_readlink(fuse_req_t request, fuse_ino_t inode)
{
    fuse_reply_readlink(request, node_of(server_of(request), inode)->target);
}

static void on_opendir(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
    (void)inode;
    info->cache_readdir = 1;
    info->keep_cache = 1;
    fuse_reply_open(request, info);
}

/* A plain ls does not need sizes that take long to compute. */
static bool is_size_cheap(const struct fs_node *node)
{
    return node->kind != FS_FILE || node->view->size ||
           atomic_load_explicit(&node->size_bytes, memory_order_relaxed) != FS_SIZE_UNKNOWN;
}

/*
 * Write the directory entry at a position (0 is ".", 1 is "..", then the children) to `out`.
 * Returns the bytes it needs, as fuse_add_direntry() does.
 */
static size_t add_entry(fuse_req_t request, fuse_ino_t directory, off_t position, bool plus,
                        char *out, size_t room)
{
    struct fs_server *server = server_of(request);
    const struct fs_nodes *nodes = &server->tree->nodes;
    const struct fs_node *node = node_of(server, directory);
    struct fuse_entry_param entry = {0};
    fs_node_index index;
    const char *name;

    if (position < 2) {
        name = position == 0 ? "." : "..";
        index = position == 0 || directory == FUSE_ROOT_ID ? index_of(directory) : node->parent;
    } else {
        index = nodes->children[node->first_child + (uint32_t)(position - 2)];
        name = nodes->list[index].name;
        /*
         * If the entry has no attributes, the kernel looks the name up later, and gets the errors
         * then.
         */
        if (plus && (!is_size_cheap(&nodes->list[index]) || get_entry(request, index, &entry) < 0))
            entry = (struct fuse_entry_param){0};
    }
    entry.attr.st_ino = inode_of(index);
    entry.attr.st_mode = mode_of(server, &nodes->list[index]);
    if (plus)
        return fuse_add_direntry_plus(request, out, room, name, &entry, position + 1);
    return fuse_add_direntry(request, out, room, name, &entry.attr, position + 1);
}

static void reply_directory(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
                            bool plus)
{
    const off_t end = 2 + (off_t)node_of(server_of(request), inode)->n_children;
    char *entries = malloc(size);
    size_t used = 0;

    if (!entries) {
        fuse_reply_err(request, ENOMEM);
        return;
    }
    for (off_t position = offset; position < end; position++) {
        const size_t needed =
            add_entry(request, inode, position, plus, entries + used, size - used);

        if (needed > size - used)
            break;
        used += needed;
    }
    fuse_reply_buf(request, entries, used);
    free(entries);
}

static void on_readdir(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
                       struct fuse_file_info *info)
{
    (void)info;
    reply_directory(request, inode, size, offset, false);
}

static void on_readdirplus(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
                           struct fuse_file_info *info)
{
    (void)info;
    reply_directory(request, inode, size, offset, true);
}

static void answer_open(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
    struct fs_server *server = server_of(request);
    const struct fs_interrupt interrupt = {is_interrupted, request};
    const struct fs_image *image;
    int result = fs_tree_open(server->tree, index_of(inode), &interrupt, &image);

    if (result == 0) {
        result = fs_image_check(image);
        if (result < 0)
            fs_tree_close(server->tree, image);
    }
    if (result < 0) {
        fs_report_read_failure(&server->failures, index_of(inode), result);
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
    /* If the reader was interrupted, there will be no release. */
    if (fuse_reply_open(request, info) == -ENOENT)
        fs_tree_close(server->tree, image);
}

static void answer_slow_open(struct fs_slow_request *slow)
{
    answer_open(slow->request, slow->inode, &slow->info);
}

static void on_open(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
    struct fs_server *server = server_of(request);
    const struct fs_view *view = node_of(server, inode)->view;
    const struct fs_slow_request slow = {request, inode, 0, 0, *info, answer_slow_open};

    if ((info->flags & O_ACCMODE) != O_RDONLY || (info->flags & O_TRUNC))
        fuse_reply_err(request, EROFS);
    else if (view && view->is_slow)
        fs_slow_requests_add(&server->slow, &slow);
    else
        answer_open(request, inode, info);
}

static void on_release(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
    (void)inode;
    fs_tree_close(server_of(request)->tree, (const struct fs_image *)(uintptr_t)info->fh);
    fuse_reply_err(request, 0);
}

/*
 * A thread's buffer for replies. It is kept, because mapping memory for every read takes time. The
 * kernel looks up each page of a reply, so a large buffer consists of huge pages.
 */
struct buffer {
    char *data;
    size_t size;
};

static pthread_key_t buffer_key;
static pthread_once_t buffer_once = PTHREAD_ONCE_INIT;

static void free_buffer(void *data)
{
    struct buffer *buffer = data;

    free(buffer->data);
    free(buffer);
}

static void make_buffer_key(void)
{
    if (pthread_key_create(&buffer_key, free_buffer) != 0)
        abort(); /* the first of 1024 keys of the process */
}

#define HUGE_PAGE_BYTES ((size_t)2 << 20)
/* From this size on, huge pages pay off. */
#define LARGE_BYTES ((size_t)64 << 10)

static void resize_buffer(struct buffer *buffer, size_t size)
{
    free(buffer->data);
    if (size >= LARGE_BYTES) {
        size = (size + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
        buffer->data = aligned_alloc(HUGE_PAGE_BYTES, size);
        if (buffer->data)
            madvise(buffer->data, size, MADV_HUGEPAGE); /* if it fails, pages are small */
    } else {
        buffer->data = malloc(size);
    }
    buffer->size = buffer->data ? size : 0;
}

/* Return room for `size` bytes, valid until the thread's next call, or NULL if out of memory. */
static char *thread_buffer(size_t size)
{
    struct buffer *buffer;

    pthread_once(&buffer_once, make_buffer_key);
    buffer = pthread_getspecific(buffer_key);
    if (!buffer) {
        buffer = calloc(1, sizeof *buffer);
        if (!buffer || pthread_setspecific(buffer_key, buffer) != 0) {
            free(buffer);
            return NULL;
        }
    }
    if (buffer->size < size)
        resize_buffer(buffer, size);
    return buffer->data;
}

static void answer_read(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
                        const struct fuse_file_info *info)
{
    struct fs_server *server = server_of(request);
    const struct fs_interrupt interrupt = {is_interrupted, request};
    const struct fs_image *image = (const struct fs_image *)(uintptr_t)info->fh;
    char *data = thread_buffer(size);
    ssize_t done;

    if (!data) {
        fuse_reply_err(request, ENOMEM);
        return;
    }
    done = fs_image_read_interruptible(image, (uint64_t)offset, size, &interrupt, data);
    if (done < 0) {
        fs_report_read_failure(&server->failures, index_of(inode), (int)done);
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

static void on_read(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
                    struct fuse_file_info *info)
{
    const struct fs_slow_request slow = {request, inode, size, offset, *info, answer_slow_read};

    if (fs_image_is_slow((const struct fs_image *)(uintptr_t)info->fh))
        fs_slow_requests_add(&server_of(request)->slow, &slow);
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

static void on_ioctl(fuse_req_t request, fuse_ino_t inode, unsigned command, void *argument,
                     struct fuse_file_info *info, unsigned flags, const void *in, size_t in_size,
                     size_t out_size)
{
    struct fs_server *server = server_of(request);
    struct gguf_source_location location;
    int result = -ENOTTY;

    (void)argument, (void)in, (void)in_size;
    if (command == GGUF_GET_SOURCE_LOCATION && !(flags & FUSE_IOCTL_DIR) &&
        out_size == sizeof location)
        result = locate((const struct fs_image *)(uintptr_t)info->fh, &location);
    if (result < 0 && result != -ENOTTY)
        fs_report_read_failure(&server->failures, index_of(inode), result);
    if (result < 0)
        fuse_reply_err(request, -result);
    else
        fuse_reply_ioctl(request, 0, &location, sizeof location);
    fs_changes_notice(&server->changes);
}

/* Reply with what the sink has, or with its size if the caller has no room yet. */
static void reply_attribute(fuse_req_t request, const struct fs_sink *sink, size_t room)
{
    if (room == 0)
        fuse_reply_xattr(request, (size_t)sink->position);
    else if (room < sink->position || sink->position > sink->to)
        fuse_reply_err(request, ERANGE);
    else
        fuse_reply_buf(request, sink->out, (size_t)sink->position);
}

static void on_getxattr(fuse_req_t request, fuse_ino_t inode, const char *name, size_t room)
{
    char value[FS_ATTRIBUTES_BYTES];
    struct fs_sink sink = {.to = sizeof value, .out = value};
    const int result = fs_attribute_write(server_of(request)->tree, index_of(inode), name, &sink);

    if (result < 0)
        fuse_reply_err(request, -result);
    else
        reply_attribute(request, &sink, room);
}

static void on_listxattr(fuse_req_t request, fuse_ino_t inode, size_t room)
{
    char names[FS_ATTRIBUTES_BYTES];
    struct fs_sink sink = {.to = sizeof names, .out = names};

    fs_attributes_list(server_of(request)->tree, index_of(inode), &sink);
    reply_attribute(request, &sink, room);
}

static void on_statfs(fuse_req_t request, fuse_ino_t inode)
{
    const struct fs_tree *tree = server_of(request)->tree;
    struct statvfs status = {.f_bsize = 4096, .f_frsize = 4096, .f_namemax = 255};

    (void)inode;
    for (uint32_t i = 0; i < tree->model->n_files; i++)
        status.f_blocks += (tree->model->files[i].size_bytes + 4095) / 4096;
    /* A read-only file system has no room, but should not look full either. */
    status.f_bfree = status.f_bavail = status.f_blocks;
    status.f_files = status.f_ffree = status.f_favail = tree->nodes.count;
    fuse_reply_statfs(request, &status);
}

const struct fuse_lowlevel_ops fs_requests = {
    .init = on_init,
    .lookup = on_lookup,
    .getattr = on_getattr,
    .readlink = on_readlink,
    .opendir = on_opendir,
    .readdir = on_readdir,
    .readdirplus = on_readdirplus,
    .open = on_open,
    .read = on_read,
    .release = on_release,
    .ioctl = on_ioctl,
    .getxattr = on_getxattr,
    .listxattr = on_listxattr,
    .statfs = on_statfs,
};
