/*
 * The server, the node and the reader behind a request of the kernel.
 *
 * File handles, which outlive the kernel's cache and the server: name_to_handle_at(2) makes them,
 * and so does a server of NFS or virtiofs that exports the mount. A handle holds an inode number
 * and a generation. Inode numbers are node numbers + 1; the generation is 0 for the root, else the
 * low 32 bits of fs_tree_identity(). If the kernel no longer knows an inode, it looks up "." in it
 * and compares the generation.
 *
 * In a mount of many models, the upper 32 bits of the inode number are the id of the model or
 * folder (fs/models/model_set.h).
 */
#pragma once

#include "fs/mount/server.h"

/*
 * Find a name in a directory, where "." stands for the inode itself and ".." for its directory.
 * `root` is the directory that is mounted. For "." and "..", `inode` may be any number, because it
 * can come from a handle. *index is FS_NO_NODE if the directory lacks the name. Returns 0, or
 * -ESTALE if the inode does not exist below the root.
 */
int fs_nfs_lookup(const struct fs_nodes *nodes, fs_node_index root, fuse_ino_t inode,
                  const char *name, fs_node_index *index);

/* Return true if a node is a directory or below it. */
bool fs_nfs_is_below(const struct fs_nodes *nodes, fs_node_index directory, fs_node_index node);

static inline struct fs_server *fs_server_of(fuse_req_t request)
{
    return fuse_req_userdata(request);
}

/* FUSE's root is inode 1. */
static inline fs_node_index fs_node_of_inode(const struct fs_shown *shown, fuse_ino_t inode)
{
    const fuse_ino_t local = inode - shown->base;

    return local == FUSE_ROOT_ID ? shown->root : (fs_node_index)(local - FUSE_ROOT_ID);
}

static inline fuse_ino_t fs_inode_of_node(const struct fs_shown *shown, fs_node_index index)
{
    return shown->base + (index == shown->root ? FUSE_ROOT_ID : (fuse_ino_t)index + FUSE_ROOT_ID);
}

/*
 * Return the node that is shown in place of another. With -o subdir, a link out of that directory
 * is shown as what it points to, which could not be reached otherwise.
 */
static inline fs_node_index fs_shown_node(const struct fs_shown *shown, fs_node_index child)
{
    fs_node_index target;

    if (shown->root == FS_ROOT || fs_tree_node(shown->tree, child)->kind != FS_LINK ||
        fs_tree_follow(shown->tree, child, &target) < 0)
        return child;
    return fs_nfs_is_below(&shown->tree->nodes, shown->root, target) ? child : target;
}

static inline const struct fs_node *fs_inode_node(const struct fs_shown *shown, fuse_ino_t inode)
{
    return fs_tree_node(shown->tree, fs_node_of_inode(shown, inode));
}

/* In a mount of many models: an inode that is a folder, or the directory of a model. */
static inline uint32_t fs_id_of_inode(fuse_ino_t inode)
{
    return (uint32_t)(inode >> 32);
}

static inline bool fs_is_set_entry(const struct fs_server *server, fuse_ino_t inode)
{
    return server->set && (uint32_t)inode == FUSE_ROOT_ID;
}

/* Return true if nobody waits for the answer any more. The condition of a struct fs_interrupt. */
static inline bool fs_is_request_given_up(void *request)
{
    /* At the end of the mount, all requests are given up, too. */
    return fuse_req_interrupted(request) || fuse_session_exited(fs_server_of(request)->session);
}
