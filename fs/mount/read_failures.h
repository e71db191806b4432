/*
 * Why reads of a mount fail, reported once for each cause: a reader gets an errno, which says
 * little, and often.
 */
#ifndef GGUFS_FS_READ_FAILURES_H
#define GGUFS_FS_READ_FAILURES_H

#include "fs/tree/tree.h"

#include <stdatomic.h>

struct fs_read_failures {
    const struct fs_tree *tree;
    atomic_uint *reported; /* causes of each file of the model, as bits; owned */
    atomic_bool is_memory_reported;
};

/* Returns 0 or -ENOMEM. */
int fs_read_failures_begin(struct fs_read_failures *failures, const struct fs_tree *tree);
void fs_read_failures_end(struct fs_read_failures *failures);

/*
 * Report that a request about `node` failed with `code`, a negative errno, unless its cause was
 * reported before. Any thread may call this.
 */
void fs_report_read_failure(struct fs_read_failures *failures, fs_node_index node, int code);

#endif
