/* The file tensors/<name>/info of the tree. */
#ifndef GGUFS_RUNNER_INFO_FILE_H
#define GGUFS_RUNNER_INFO_FILE_H

#include "contrib/runner/compute/tensor.h"
#include "contrib/runner/tree/failure.h"

#include <limits.h>
#include <stdint.h>

/* The place of a tensor's bytes in a model file. */
struct run_place {
    char file[NAME_MAX + 1]; /* the file's name without directory; "": unknown */
    uint64_t offset;
};

/*
 * Read type and shape of the tensor tensor->name, and its place. -EINVAL for wrong values, -ENOTSUP
 * for a type without decoder or big-endian data, or the negative errno of reading the file.
 */
int run_info_file_read(int tree_fd, struct run_tensor *tensor, struct run_place *place,
                       struct run_failure *failure);

#endif
