/*
 * Extended attributes, xattr(7), of a tensor's folder and the files in it: its type, shape, and
 * place in the model file. Values are texts without NUL. All other nodes have none.
 */
#pragma once

#include "fs/tree/core/nodes.h"
#include "fs/tree/output/sink.h"

struct fs_tree;

/* Larger than every value and than the list of names. */
#define FS_ATTRIBUTES_BYTES 4096

/*
 * Write the value of an attribute. Returns 0, -ENODATA if the node does not have it, or -EOPNOTSUPP
 * for other names than user.*, after which ls(1) does not ask for them again.
 */
int fs_attribute_write(const struct fs_tree *tree, fs_node_index node, const char *name,
                       struct fs_sink *sink);

/* Write the names of the node's attributes, each with a NUL at its end. */
void fs_attributes_list(const struct fs_tree *tree, fs_node_index node, struct fs_sink *sink);
