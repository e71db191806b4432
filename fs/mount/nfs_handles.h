/*
 * File handles, which outlive the kernel's cache and the server: name_to_handle_at(2) makes them,
 * and so does a server of NFS or virtiofs that exports the mount. A handle holds an inode number
 * and a generation. Inode numbers are node numbers + 1; the generation is 0 for the root, else the
 * low 32 bits of fs_tree_identity(). If the kernel no longer knows an inode, it looks up "." in it
 * and compares the generation.
 */
#ifndef GGUFS_FS_NFS_HANDLES_H
#define GGUFS_FS_NFS_HANDLES_H

#define FUSE_USE_VERSION 314
#include "fs/tree/tree.h"

#include <fuse_lowlevel.h>

#include <stdbool.h>
#include <stdint.h>

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

#endif
