/* Hash of a tree, for telling trees of different models or options apart. */
#pragma once

#include "fs/tree/tree.h"

#include <stdint.h>

/*
 * Return the identity of a tree. It is the same in another process if the model's files have the
 * same headers, sizes and modification times, the keys the same names, the edited ones the same
 * values, and the trees as many nodes. `options` is any number that stands for the options that the
 * contents depend on. Two trees that differ in one of these have the same identity with a
 * probability of 2^-64.
 *
 * If a file is still growing, only its header counts.
 */
uint64_t fs_tree_identity(const struct fs_tree *tree, uint64_t options);
