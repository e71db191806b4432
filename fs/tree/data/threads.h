/* Runs a function in several threads. */
#ifndef GGUFS_FS_THREADS_H
#define GGUFS_FS_THREADS_H

#include <stdint.h>

/* Return the number of threads for `n_items` items: at most one per processor and item. */
int fs_thread_count(uint64_t n_items);

/*
 * Call run(user) in n_threads threads, including the caller's, and wait for all. If threads cannot
 * be started, there are fewer. OpenMP is not used here: if a thread cannot be created, for example
 * at the limit of a control group, libgomp ends the process, and with it the mount.
 */
void fs_run_threads(int n_threads, void *(*run)(void *user), void *user);

#endif
