/* The list of a model's tensors, tensors.json of its tree. All of them must exist. */
#ifndef GGUFS_RUNNER_TENSOR_LIST_H
#define GGUFS_RUNNER_TENSOR_LIST_H

#include "contrib/runner/tree/failure.h"

/*
 * Called for a tensor of the list with its name, and its GGUF name if that differs, else "".
 * Returns 0, or a negative errno after filling in the failure.
 */
typedef int run_tensor_listed(void *context, const char *name, const char *gguf_name,
                              struct run_failure *failure);

/*
 * Reads tensors.json below the directory `tree_fd`, token by token, and calls on_tensor for each
 * tensor in order. Returns 0, what on_tensor returned, -EINVAL if the file is not a list of
 * tensors, or the negative errno of reading it.
 */
int run_tensor_list_read(int tree_fd, run_tensor_listed *on_tensor, void *context,
                         struct run_failure *failure);

#endif
