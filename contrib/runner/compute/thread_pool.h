/*
 * A thread pool: threads that compute the items of an array together. Any free thread takes the
 * next piece of the items, so a thread that the system does not schedule delays only the piece that
 * it has begun. Idle threads sleep after a short while.
 */
#pragma once

#include <stddef.h>

#define RUN_MAX_THREADS 4096

/* Compute items `first` to `end` - 1. */
typedef void run_parallel_body(void *context, size_t first, size_t end);

/*
 * Start a pool of n_threads threads, 1 to RUN_MAX_THREADS: the caller and new ones. If the system
 * refuses some of them, the pool is smaller. There is one pool in a process.
 */
void run_thread_pool_start(unsigned n_threads);

/* End the pool, if there is one. Call it from the thread that started the pool. */
void run_thread_pool_end(void);

/* Return the number of threads, with the caller; 1 without a pool. */
unsigned run_thread_pool_size(void);

/*
 * Return the number of the calling thread, less than run_thread_pool_size(); 0 in the caller. Two
 * bodies that run at the same time have different numbers, so it can index scratch memory of the
 * call to run_parallel_for().
 */
unsigned run_thread_number(void);

/*
 * Call `body` for all items 0 to n - 1, each exactly once, in pieces of `grain` adjacent items, or
 * a multiple of it if there are many, and return when all are done. The result must not depend on
 * the pieces. The caller computes a single piece itself, and all pieces if no pool was started or
 * the call comes from a body. Otherwise, call it from one thread at a time. Allocates nothing.
 */
void run_parallel_for(size_t n, size_t grain, run_parallel_body *body, void *context);

/* The same for a body that computes one item. */
typedef void run_parallel_item(void *context, size_t item);
void run_parallel_for_each(size_t n, size_t grain, run_parallel_item *compute, void *context);

/*
 * Return the number of items, at least 1, in a piece of about `n_operations` operations if an item
 * takes `item_operations`.
 */
size_t run_grain(size_t n_operations, size_t item_operations);
