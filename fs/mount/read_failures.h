/*
 * Logs why reads of a mount fail: the reader gets only an errno. The first failure of each file of
 * the model is logged, and the first lack of memory; `ggufs --status` shows how many there were.
 */
#pragma once

#include "fs/tree/tree.h"

#include <stdatomic.h>
#include <stdbool.h>

struct fs_read_failures {
    const struct fs_tree *tree;
    atomic_bool *are_logged; /* for each file of the model and other cause; owned */
    _Atomic uint64_t *n;     /* failed requests, without those that a signal interrupted */
};

/* Start to count in *n. Returns 0 or -ENOMEM. */
int fs_read_failures_begin(struct fs_read_failures *failures, const struct fs_tree *tree,
                           _Atomic uint64_t *n);
void fs_read_failures_end(struct fs_read_failures *failures);

/*
 * Count and log that a request about `node` failed with `code`, a negative errno. Any thread may
 * call this.
 */
void fs_report_read_failure(struct fs_read_failures *failures, fs_node_index node, int code);
