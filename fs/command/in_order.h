/* Work on many items in parallel whose results are needed in order. */
#ifndef GGUFS_FS_IN_ORDER_H
#define GGUFS_FS_IN_ORDER_H

#include <stddef.h>
#include <stdint.h>

struct fs_ordered_work {
    void *user;
    uint64_t n_items;
    size_t n_slots; /* places for results, from fs_in_order_slots() */

    /* Computes item `i` into `slot`. Called from several threads. */
    void (*compute)(void *user, uint64_t i, size_t slot);
    /*
     * Takes the result of item `i` out of `slot`. Called for one item at a time, in their order,
     * from changing threads. Returns 0, or a negative errno to stop.
     */
    int (*finish)(void *user, uint64_t i, size_t slot);
};

/* How many slots keep all threads busy with so many items. */
size_t fs_in_order_slots(uint64_t n_items);

/*
 * Compute and finish all items with one OpenMP team. Threads that must wait sleep, unlike in an
 * `ordered` loop, where they spin: on a busy machine that takes many times as long. Returns 0, what
 * finish() returned, or -ENOMEM.
 */
int fs_in_order(const struct fs_ordered_work *work);

#endif
