/*
 * Checks of the thread pool of the runner. They do not need Criterion, which does not start under
 * ThreadSanitizer: tests/threads/check_thread_pool.c runs them alone.
 */
#pragma once

#include <stddef.h>

struct thread_pool_check {
    const char *name;
    unsigned (*run)(void); /* returns the number of errors; starts and ends the pool */
};

/* Start a pool of 3 threads, for instance as the .init of a suite; run_thread_pool_end() is its
 * .fini. */
void thread_pool_begin_test(void);

extern const struct thread_pool_check thread_pool_checks[];
extern const size_t thread_pool_check_count;
