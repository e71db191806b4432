/*
 * A team of threads that compute the items of an array together. Items are shared in pieces that
 * any thread takes when it is free, so that a thread without a processor delays nobody: only pieces
 * that it has begun are waited for. Idle threads sleep after a short while.
 */
#ifndef GGUFS_RUNNER_TEAM_H
#define GGUFS_RUNNER_TEAM_H

#include <stddef.h>

#define RUN_MAX_THREADS 4096

/*
 * Compute items `first` to `end` - 1. `thread` is the number of the calling thread, less than
 * run_team_size(); two calls at the same time have different numbers, so it can index scratch
 * memory of the call to run_parallel().
 */
typedef void run_parallel_body(void *context, size_t first, size_t end, unsigned thread);

/*
 * Start a team of n_threads threads, 1 to RUN_MAX_THREADS: the caller and new ones. If the system
 * refuses some of them, the team is smaller. There is one team in a process.
 */
void run_team_start(unsigned n_threads);

/* End the team, if there is one. Call it from the thread that started the team. */
void run_team_end(void);

/* Return the number of threads, with the caller; 1 without a team. */
unsigned run_team_size(void);

/*
 * Call `body` for all items 0 to n - 1, each exactly once, in pieces of `grain` adjacent items, or
 * a multiple of it if there are many, and return when all are done. The result must not depend on
 * the pieces. A single piece is computed by the caller, and so are all if there is no team or if
 * the call comes from a body. Otherwise, call it from one thread at a time. Allocates nothing.
 */
void run_parallel(size_t n, size_t grain, run_parallel_body *body, void *context);

/*
 * Return the number of items in a piece, at least 1: a piece takes about `n_operations`, an item
 * `item_operations`.
 */
size_t run_grain(size_t n_operations, size_t item_operations);

#endif
