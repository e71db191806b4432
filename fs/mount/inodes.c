#include "fs/mount/inodes.h"

#include <errno.h>
#include <string.h>

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
