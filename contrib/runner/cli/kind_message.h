/* Explains why a file that holds no language model cannot be run. */
#pragma once

#include "contrib/runner/tree/open_tree.h"

/*
 * Explain the failure `code`, a negative errno, to run a model. If the file holds another kind of
 * model, replace the failure by one that names the kind and its purpose, and return true. The
 * tree's metadata must be open.
 */
bool run_kind_explain(const struct run_tree *tree, int code, struct run_failure *failure);
