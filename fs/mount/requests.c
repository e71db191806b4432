#include "fs/mount/requests.h"

#include "fs/mount/attach.h"
#include "fs/mount/inodes.h"
#include "fs/tree/attributes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* Seconds. The kernel's cache stays valid until fs/mount/changes.c invalidates it. */
#define FOREVER 1e9

static mode_t mode_of(const struct fs_server *server, const struct fs_node *node)
{
    if (node->kind == FS_LINK)
        return S_IFLNK | 0777; /* the target's mode decides */
    return (node->kind == FS_FILE ? S_IFREG | 0444 : S_IFDIR | 0555) & server->mode_mask;
}

/* Returns 0 or a negative errno. */
static int get_status(fuse_req_t request, fs_node_index index, struct stat *status)
{
    struct fs_server *server = fs_server_of(request);
    const struct fs_node *node = &server->tree->nodes.list[index];
    const struct fs_interrupt interrupt = {.check = fs_is_request_given_up, .user = request};
    const struct timespec modified = fs_changes_modified(&server->changes);
    uint64_t size_bytes;
    int result = fs_tree_size(server->tree, index, &interrupt, &size_bytes);

    if (result < 0) {
        fs_report_read_failure(&server->failures, index, result);
        return result;
    }
    *status = (struct stat){
        .st_ino = fs_inode_of_node(server, index),
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
    const struct fs_server *server = fs_server_of(request);

    *entry = (struct fuse_entry_param){.ino = fs_inode_of_node(server, index),
                                       .generation = index == server->root ? 0 : server->generation,
                                       .attr_timeout = FOREVER,
                                       .entry_timeout = FOREVER};
    return get_status(request, index, &entry->attr);
}

/*
 * Reads that the kernel asks for ahead of time, or of files open with O_DIRECT, that may wait for
 * an answer. If the model's disk stalls, this many must wait for it before others have to wait,
 * too.
 */
#define MAX_BACKGROUND 64

static void on_init(void *data, struct fuse_conn_info *connection)
{
    const struct fs_server *server = data;

    connection->max_read = server->max_read;
    /* No more than fs_attach() has set in the kernel. */
    connection->max_readahead = FS_READ_AHEAD_BYTES;
    connection->max_background = MAX_BACKGROUND;
    connection->want |= connection->capable & FUSE_CAP_EXPORT_SUPPORT; /* see inodes.h */
    /* Nothing is ever written, so there is nothing to write back or to truncate. */
    connection->want &= ~(unsigned)(FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_ATOMIC_O_TRUNC);
    /* Splicing goes through pipes, which is slower than copying here and takes more calls. */
    connection->want &=
        ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
}

static void on_lookup(fuse_req_t request, fuse_ino_t parent, const char *name)
{
    struct fs_server *server = fs_server_of(request);
    /* Inode 0: the kernel remembers that the name does not exist. */
    struct fuse_entry_param entry = {.entry_timeout = FOREVER};
    fs_node_index index;
    int result = fs_nfs_lookup(&server->tree->nodes, server->root, parent, name, &index);

    if (result == 0 && index != FS_NO_NODE)
        result = get_entry(request, fs_shown_node(server, index), &entry);
    if (result < 0)
        fuse_reply_err(request, -result);
    else
        fuse_reply_entry(request, &entry);
}

static void on_getattr(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
    struct stat status;
    const int result = get_status(request, fs_node_of_inode(fs_server_of(request), inode), &status);

    (void)info;
    if (result < 0)
        fuse_reply_err(request, -result);
    else
        fuse_reply_attr(request, &status, FOREVER);
}

static void on_readlink(fuse_req_t request, fuse_ino_t inode)
{
    fuse_reply_readlink(request, fs_inode_node(fs_server_of(request), inode)->target);
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
    struct fs_server *server = fs_server_of(request);
    const struct fs_nodes *nodes = &server->tree->nodes;
    const struct fs_node *node = fs_inode_node(server, directory);
    struct fuse_entry_param entry = {0};
    fs_node_index index;
    const char *name;

    if (position < 2) {
        name = position == 0 ? "." : "..";
        index = position == 0 || directory == FUSE_ROOT_ID ? fs_node_of_inode(server, directory)
                                                           : node->parent;
    } else {
        index = nodes->children[node->first_child + (uint32_t)(position - 2)];
        name = nodes->list[index].name;
        index = fs_shown_node(server, index);
        /*
         * If the entry has no attributes, the kernel looks the name up later, and gets the errors
         * then.
         */
        if (plus && (!is_size_cheap(&nodes->list[index]) || get_entry(request, index, &entry) < 0))
            entry = (struct fuse_entry_param){0};
    }
    entry.attr.st_ino = fs_inode_of_node(server, index);
    entry.attr.st_mode = mode_of(server, &nodes->list[index]);
    if (plus)
        return fuse_add_direntry_plus(request, out, room, name, &entry, position + 1);
    return fuse_add_direntry(request, out, room, name, &entry.attr, position + 1);
}

static void reply_directory(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
                            bool plus)
{
    const off_t end = 2 + (off_t)fs_inode_node(fs_server_of(request), inode)->n_children;
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

static void write_number(struct fs_sink *sink, const char *name, uint64_t number)
{
    fs_sink_print(sink, "%s %" PRIu64 "\n", name, number);
}

/* Write the value of FS_STATUS_ATTRIBUTE, which is shorter than FS_ATTRIBUTES_BYTES. */
static void write_mount_status(const struct fs_server *server, struct fs_sink *sink)
{
    const struct fs_activity *activity = server->activity;

    fs_sink_print(sink, "version %s\n", GGUFS_VERSION);
    write_number(sink, "pid", (uint64_t)getpid());
    write_number(sink, "uptime_seconds", fs_activity_uptime_seconds(activity));
    write_number(sink, "idle_seconds", fs_activity_idle_seconds(activity));
    write_number(sink, "timeout_seconds", server->timeout_seconds);
    write_number(sink, "requests", activity->n_requests);
    write_number(sink, "read_bytes", activity->n_read_bytes);
    write_number(sink, "read_failures", server->failures.n);
#ifdef __GLIBC__
    {
        const struct mallinfo2 memory = mallinfo2();

        /* Blocks in use: the copied metadata, the tree, caches, buffers of replies. */
        write_number(sink, "memory_bytes", memory.uordblks + memory.hblkhd);
    }
#endif
}

static void on_getxattr(fuse_req_t request, fuse_ino_t inode, const char *name, size_t room)
{
    char value[FS_ATTRIBUTES_BYTES];
    struct fs_sink sink = {.to = sizeof value, .out = value};
    const struct fs_server *server = fs_server_of(request);
    int result = 0;

    if (inode == FUSE_ROOT_ID && strcmp(name, FS_STATUS_ATTRIBUTE) == 0)
        write_mount_status(server, &sink);
    else
        result = fs_attribute_write(server->tree, fs_node_of_inode(server, inode), name, &sink);
    if (result < 0)
        fuse_reply_err(request, -result);
    else
        reply_attribute(request, &sink, room);
}

static void on_listxattr(fuse_req_t request, fuse_ino_t inode, size_t room)
{
    char names[FS_ATTRIBUTES_BYTES];
    struct fs_sink sink = {.to = sizeof names, .out = names};
    const struct fs_server *server = fs_server_of(request);

    fs_attributes_list(server->tree, fs_node_of_inode(server, inode), &sink);
    reply_attribute(request, &sink, room);
}

static void on_statfs(fuse_req_t request, fuse_ino_t inode)
{
    const struct fs_tree *tree = fs_server_of(request)->tree;
    struct statvfs status = {.f_bsize = 4096, .f_frsize = 4096, .f_namemax = 255};

    (void)inode;
    for (uint32_t i = 0; i < tree->model->n_files; i++)
        status.f_blocks += (tree->model->files[i].source.size_bytes + 4095) / 4096;
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
    .open = fs_on_open,
    .read = fs_on_read,
    .release = fs_on_release,
    .ioctl = fs_on_ioctl,
    .getxattr = on_getxattr,
    .listxattr = on_listxattr,
    .statfs = on_statfs,
};
