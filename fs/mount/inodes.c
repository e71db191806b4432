#include "fs/mount/inodes.h"

#include "fs/tree/identity.h"

#include <errno.h>
#include <string.h>

uint32_t fs_inodes_generation(const struct fs_tree *tree, uint64_t options)
{
    return (uint32_t)fs_tree_identity(tree, options);
}

int fs_inodes_lookup(const struct fs_nodes *nodes, fuse_ino_t inode, const char *name,
                     fs_node_index *index)
{
    fs_node_index node;

    if (inode < FUSE_ROOT_ID || inode - FUSE_ROOT_ID >= nodes->count)
        return -ESTALE;
    node = (fs_node_index)(inode - FUSE_ROOT_ID);
    if (strcmp(name, ".") == 0 || (node == FS_ROOT && strcmp(name, "..") == 0))
        *index = node;
    else if (strcmp(name, "..") == 0)
        *index = nodes->list[node].parent;
    else
        *index = fs_nodes_find(nodes, node, name);
    return 0;
}
