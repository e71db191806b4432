/* Makes the nodes of a model's tree from the table of views. */
#pragma once

#include "fs/tree/core/view_row.h"

/*
 * Add the nodes of every view, for every subject that it applies to, and the directories above
 * them. Returns 0, -ENOMEM or -EOVERFLOW. Two nodes may have one path: fs_nodes_seal() finds them.
 */
int fs_layout_add_nodes(const struct fs_table *table, const struct fs_tree *tree,
                        struct fs_nodes *nodes);
