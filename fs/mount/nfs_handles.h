/*
 * File handles, which outlive the kernel's cache and the server: name_to_handle_at(2) makes them,
 * and so does a server of NFS or virtiofs that exports the mount. A handle holds an inode number
 * and a generation. Inode numbers are node numbers + 1; the generation stands for the tree. If the
 * kernel no longer knows an inode, it looks up "." in it and compares the generation.
 */
#ifndef GGUFS_FS_NFS_HANDLES_H
#define GGUFS_FS_NFS_HANDLES_H

#define FUSE_USE_VERSION 314
#include "fs/tree/tree.h"

#include <fuse_lowlevel.h>

#include <stdbool.h>
#include <stdint.h>

/*
 * Return the generation of the inodes of a tree. Trees of other models, or made with other options,
 * have another one, with a probability of 2^-32 that two agree. It has 32 bits in the kernel; the
 * root's is always 0. `options` is as for fs_tree_identity().
 */
uint32_t fs_nfs_generation(const struct fs_tree *tree, uint64_t options);

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
