/* A number that stands for a tree: which model it shows, and which files it has. */
#ifndef GGUFS_FS_IDENTITY_H
#define GGUFS_FS_IDENTITY_H

#include "fs/tree/tree.h"

#include <stdint.h>

/*
 * Return the identity of a tree. It is the same in another process if the model's files have the
 * same headers, sizes and modification times, the keys have the same values, and all nodes the same
 * names and numbers. `options` is any number that stands for the options that the contents depend
 * on. Two trees that differ have the same identity with a probability of 2^-64.
 *
 * If a file is still growing, only its header counts.
 */
uint64_t fs_tree_identity(const struct fs_tree *tree, uint64_t options);

#endif
