/* Runs a function in several threads, or many items in order. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Return the number of threads for `n_items` items: at most one per processor and item. */
int fs_thread_count(uint64_t n_items);

/*
 * Call run(user) in n_threads threads, including the caller's, and wait for all. If threads cannot
 * be started, for example at the limit of a control group, there are fewer.
 */
void fs_run_threads(int n_threads, void *(*run)(void *user), void *user);

/* Ordered pipeline: computes many items in parallel and takes the results in order. */
struct fs_ordered_pipeline {
    void *user;
    uint64_t n_items;
    size_t slot_bytes; /* of memory for the result of an item, and for computing it */

    /*
     * Compute item `i` into `slot`, which no other thread uses, and which has no initial value.
     * Called by several threads.
     */
    void (*compute)(void *user, uint64_t i, void *slot);
    /*
     * Take the result of item `i` out of `slot`. Called for one item at a time, in order, but not
     * always by the same thread. Returns 0, or a negative errno to stop.
     */
    int (*finish)(void *user, uint64_t i, const void *slot);
};

/* The alignment of a slot, for arrays in it that vector kernels read. */
#define FS_SLOT_ALIGNMENT 64

/* Compute and finish all items in several threads. Returns 0, the error of finish(), or -ENOMEM. */
int fs_ordered_pipeline_run(const struct fs_ordered_pipeline *work);
