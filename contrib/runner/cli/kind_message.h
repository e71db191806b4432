/* Explains why a file that is no language model cannot be run. */
#ifndef GGUFS_RUNNER_KIND_MESSAGE_H
#define GGUFS_RUNNER_KIND_MESSAGE_H

#include "contrib/runner/tree/open_tree.h"

/*
 * After a failure to run a model with a negative errno: if the cause is that the model is of
 * another kind, replace the failure by one that names it and says what it is for, and return true.
 * The tree's metadata must be open.
 */
bool run_kind_explain(const struct run_tree *tree, int code, struct run_failure *failure);

#endif
