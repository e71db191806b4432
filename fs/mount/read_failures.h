/*
 * Logs why reads of a mount fail: the reader gets only an errno. The first failure of each cause is
 * logged, then the 10th, the 100th and so on, and at the end how many there were.
 */
#ifndef GGUFS_FS_READ_FAILURES_H
#define GGUFS_FS_READ_FAILURES_H

#include "fs/tree/tree.h"

#include <stdatomic.h>

struct fs_read_failures {
    const struct fs_tree *tree;
    _Atomic uint64_t *counts; /* of each cause, for each file of the model in turn; owned */
    _Atomic uint64_t n_without_memory;
    _Atomic uint64_t n; /* of all causes */
};

/* Start without failures. Returns 0 or -ENOMEM. */
int fs_read_failures_begin(struct fs_read_failures *failures, const struct fs_tree *tree);
/* Log how many there were. */
void fs_read_failures_end(struct fs_read_failures *failures);

/*
 * Count and log that a request about `node` failed with `code`, a negative errno. Any thread may
 * call this.
 */
void fs_report_read_failure(struct fs_read_failures *failures, fs_node_index node, int code);

#endif
