/* Reports why reads of a mount fail, once for each cause: the reader gets only an errno. */
#ifndef GGUFS_FS_READ_FAILURES_H
#define GGUFS_FS_READ_FAILURES_H

#include "fs/tree/tree.h"

#include <stdatomic.h>

struct fs_read_failures {
    const struct fs_tree *tree;
    atomic_uint *reported; /* one bit per cause, for each file of the model; owned */
    atomic_bool is_memory_reported;
};

/* Start without reported causes. Returns 0 or -ENOMEM. */
int fs_read_failures_begin(struct fs_read_failures *failures, const struct fs_tree *tree);
void fs_read_failures_end(struct fs_read_failures *failures);

/*
 * Report that a request about `node` failed with `code`, a negative errno, unless its cause was
 * reported before. Any thread may call this.
 */
void fs_report_read_failure(struct fs_read_failures *failures, fs_node_index node, int code);

#endif
