#include "fs/mount/requests.h"

#include "fs/mount/inodes.h"
#include "fs/mount/mountpoint.h"
#include "fs/mount/set_requests.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

bool fs_nfs_is_below(const struct fs_nodes *nodes, fs_node_index directory, fs_node_index node)
{
    while (node != directory && node != FS_ROOT)
        node = nodes->list[node].parent;
    return node == directory;
}

int fs_nfs_lookup(const struct fs_nodes *nodes, fs_node_index root, fuse_ino_t inode,
                  const char *name, fs_node_index *index)
{
    const bool is_up = strcmp(name, "..") == 0;
    fs_node_index node;

    if (inode < FUSE_ROOT_ID || inode - FUSE_ROOT_ID >= nodes->count)
        return -ESTALE;
    node = inode == FUSE_ROOT_ID ? root : (fs_node_index)(inode - FUSE_ROOT_ID);
    if (!is_up && strcmp(name, ".") != 0)
        *index = fs_nodes_find(nodes, node, name);
    else if (fs_nfs_is_below(nodes, root, node))
        *index = is_up && node != root ? nodes->list[node].parent : node;
    else
        return -ESTALE;
    return 0;
}

mode_t fs_mode_of(const struct fs_server *server, const struct fs_node *node)
{
    if (node->kind == FS_LINK)
        return S_IFLNK | 0777; /* the target's mode decides */
    return (node->kind == FS_FILE ? S_IFREG | 0444 : S_IFDIR | 0555) & ~server->options->umask;
}

/* Returns 0 or a negative errno. */
static int get_status(fuse_req_t request, struct fs_shown *shown, fs_node_index index,
                      struct stat *status)
{
    struct fs_server *server = fs_server_of(request);
    const struct fs_node *node = &shown->tree->nodes.list[index];
    const struct fs_interrupt interrupt = {.check = fs_is_request_given_up, .user = request};
    const struct timespec modified = fs_changes_modified(&shown->changes);
    uint64_t size_bytes;
    int result = fs_tree_size(shown->tree, index, &interrupt, &size_bytes);

    if (result < 0) {
        fs_report_read_failure(server, shown, index, result);
        return result;
    }
    *status = (struct stat){
        .st_ino = fs_inode_of_node(shown, index),
        .st_mode = fs_mode_of(server, node),
        .st_nlink = fs_node_is_directory(node) ? 2 + node->n_folders : 1,
        .st_uid = server->options->uid,
        .st_gid = server->options->gid,
        .st_size = (off_t)size_bytes,
        .st_blocks = (blkcnt_t)((size_bytes + 511) / 512),
        .st_atim = modified,
        .st_mtim = modified,
        .st_ctim = modified,
    };
    return 0;
}

static int get_entry(fuse_req_t request, struct fs_shown *shown, fs_node_index index,
                     struct fuse_entry_param *entry)
{
    const fuse_ino_t inode = fs_inode_of_node(shown, index);
    const double timeout = shown->is_lasting ? FS_FOREVER : 0;

    *entry = (struct fuse_entry_param){.ino = inode,
                                       .generation = inode == FUSE_ROOT_ID ? 0 : shown->generation,
                                       .attr_timeout = timeout,
                                       .entry_timeout = timeout};
    return get_status(request, shown, index, &entry->attr);
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

    connection->max_read = server->options->max_read;
    /* No more than fs_mountpoint_mount() has set in the kernel. */
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
    struct fuse_entry_param entry = {.entry_timeout = FS_FOREVER};
    struct fs_shown *shown;
    fs_node_index index;
    int result;

    if (fs_set_lookup(request, parent, name))
        return;
    result = fs_enter(server, parent, &shown);
    if (result < 0) {
        fuse_reply_err(request, -result);
        return;
    }
    result = fs_nfs_lookup(&shown->tree->nodes, shown->root, parent - shown->base, name, &index);
    if (result == 0 && index != FS_NO_NODE)
        result = get_entry(request, shown, fs_shown_node(shown, index), &entry);
    fs_leave(server, shown);
    if (result < 0)
        fuse_reply_err(request, -result);
    else
        fuse_reply_entry(request, &entry);
}

static void on_getattr(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
    struct fs_server *server = fs_server_of(request);
    struct fs_shown *shown;
    struct stat status;
    double timeout = FS_FOREVER;
    int result;

    if (fs_set_getattr(request, inode))
        return;
    result = fs_enter(server, inode, &shown);
    if (result == 0) {
        result = get_status(request, shown, fs_node_of_inode(shown, inode), &status);
        timeout = shown->is_lasting ? FS_FOREVER : 0;
        fs_leave(server, shown);
    }
    if (result < 0)
        fuse_reply_err(request, -result);
    else
        fuse_reply_attr(request, &status, timeout);
}

static void on_readlink(fuse_req_t request, fuse_ino_t inode)
{
    struct fs_server *server = fs_server_of(request);
    struct fs_shown *shown;
    const int result = fs_enter(server, inode, &shown);

    if (result < 0) {
        fuse_reply_err(request, -result);
        return;
    }
    fuse_reply_readlink(request, fs_inode_node(shown, inode)->target);
    fs_leave(server, shown);
}

static void on_opendir(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *info)
{
    if (fs_set_opendir(request, inode, info))
        return;
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
static size_t add_entry(fuse_req_t request, struct fs_shown *shown, fuse_ino_t directory,
                        off_t position, bool plus, char *out, size_t room)
{
    struct fs_server *server = fs_server_of(request);
    const struct fs_nodes *nodes = &shown->tree->nodes;
    const struct fs_node *node = fs_inode_node(shown, directory);
    struct fuse_entry_param entry = {0};
    fs_node_index index;
    const char *name;

    if (position < 2) {
        name = position == 0 ? "." : "..";
        index = position == 0 || directory == shown->base + FUSE_ROOT_ID
                    ? fs_node_of_inode(shown, directory)
                    : node->parent;
    } else {
        index = nodes->children[node->first_child + (uint32_t)(position - 2)];
        name = nodes->list[index].name;
        index = fs_shown_node(shown, index);
        /*
         * If the entry has no attributes, the kernel looks the name up later, and gets the errors
         * then.
         */
        if (plus &&
            (!is_size_cheap(&nodes->list[index]) || get_entry(request, shown, index, &entry) < 0))
            entry = (struct fuse_entry_param){0};
    }
    entry.attr.st_ino = fs_inode_of_node(shown, index);
    entry.attr.st_mode = fs_mode_of(server, &nodes->list[index]);
    if (plus)
        return fuse_add_direntry_plus(request, out, room, name, &entry, position + 1);
    return fuse_add_direntry(request, out, room, name, &entry.attr, position + 1);
}

static void reply_directory(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
                            bool plus, const struct fuse_file_info *info)
{
    struct fs_server *server = fs_server_of(request);
    struct fs_shown *shown = NULL;
    const bool is_of_set = fs_is_set_folder(info);
    int result = is_of_set ? 0 : fs_enter(server, inode, &shown);
    const off_t end = shown && result == 0 ? 2 + (off_t)fs_inode_node(shown, inode)->n_children : 0;
    char *entries = result == 0 ? malloc(size) : NULL;
    size_t used = 0;

    if (!entries) {
        fuse_reply_err(request, result < 0 ? -result : ENOMEM);
        return;
    }
    for (off_t position = offset; is_of_set || position < end; position++) {
        const size_t needed =
            is_of_set
                ? fs_set_add_entry(request, info, &position, plus, entries + used, size - used)
                : add_entry(request, shown, inode, position, plus, entries + used, size - used);

        if (needed == 0 || needed > size - used)
            break;
        used += needed;
    }
    if (shown)
        fs_leave(server, shown);
    fuse_reply_buf(request, entries, used);
    free(entries);
}

static void on_readdir(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
                       struct fuse_file_info *info)
{
    reply_directory(request, inode, size, offset, false, info);
}

static void on_readdirplus(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
                           struct fuse_file_info *info)
{
    reply_directory(request, inode, size, offset, true, info);
}

static void write_number(struct fs_sink *sink, const char *name, uint64_t number)
{
    fs_sink_print(sink, "%s %" PRIu64 "\n", name, number);
}

/* Write the value of FS_STATUS_ATTRIBUTE. */
static void write_mount_status(const struct fs_server *server, struct fs_sink *sink)
{
    const struct fs_activity *activity = server->activity;
    size_t n_models, n_open;

    fs_sink_print(sink, "version %s\n", GGUFS_VERSION);
    write_number(sink, "pid", (uint64_t)getpid());
    write_number(sink, "uptime_seconds", fs_activity_seconds_since(activity->started));
    write_number(sink, "idle_seconds", fs_activity_seconds_since(activity->last_request));
    write_number(sink, "timeout_seconds", server->options->timeout_seconds);
    write_number(sink, "requests", activity->n_requests);
    write_number(sink, "read_bytes", activity->n_read_bytes);
    write_number(sink, "read_failures", server->n_failures);
    if (server->set) {
        fs_model_set_count(server->set, &n_models, &n_open);
        write_number(sink, "models", n_models);
        write_number(sink, "open_models", n_open);
    }
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
    char value[4096];
    struct fs_sink sink = {.to = sizeof value, .out = value};

    if (inode != FUSE_ROOT_ID || strcmp(name, FS_STATUS_ATTRIBUTE) != 0) {
        /* After EOPNOTSUPP, ls(1) does not ask about any other file. */
        fuse_reply_err(request, gguf_text_starts_with(name, "user.") ? ENODATA : EOPNOTSUPP);
        return;
    }
    write_mount_status(fs_server_of(request), &sink);
    if (room == 0)
        fuse_reply_xattr(request, (size_t)sink.position);
    else if (room < sink.position)
        fuse_reply_err(request, ERANGE);
    else
        fuse_reply_buf(request, value, (size_t)sink.position);
}

static void on_listxattr(fuse_req_t request, fuse_ino_t inode, size_t room)
{
    if (room == 0)
        fuse_reply_xattr(request, 0);
    else
        fuse_reply_buf(request, NULL, 0);
}

static void on_statfs(fuse_req_t request, fuse_ino_t inode)
{
    struct fs_server *server = fs_server_of(request);
    struct statvfs status = {.f_bsize = 4096, .f_frsize = 4096, .f_namemax = 255};
    size_t n_models = 0, n_open;

    if (server->set) {
        fs_model_set_count(server->set, &n_models, &n_open);
        status.f_files = n_models;
    } else {
        const struct fs_tree *tree = server->shown.tree;

        for (uint32_t i = 0; i < tree->model->n_files; i++)
            status.f_blocks += (tree->model->files[i].source.size_bytes + 4095) / 4096;
        status.f_files = tree->nodes.count;
    }
    /* A read-only file system has no room, but should not look full either. */
    status.f_bfree = status.f_bavail = status.f_blocks;
    status.f_ffree = status.f_favail = status.f_files;
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
    .releasedir = fs_set_on_releasedir,
    .open = fs_on_open,
    .read = fs_on_read,
    .release = fs_on_release,
    .ioctl = fs_on_ioctl,
    .getxattr = on_getxattr,
    .listxattr = on_listxattr,
    .statfs = on_statfs,
};
