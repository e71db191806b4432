/* Cancels a long computation, and follows its progress. */
#pragma once

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/*
 * `check(user)` returns true once no reader waits for the result. Called from time to time by the
 * computing threads, one at a time.
 */
struct fs_interrupt {
    bool (*check)(void *user);
    void *user;
    /* Called in the same way after n_bytes have been hashed for SHA256SUMS. May be NULL. */
    void (*advance)(void *user, uint64_t n_bytes);
};

/* Return true if the request was withdrawn; false if `interrupt` is NULL. */
static inline bool fs_is_interrupted(const struct fs_interrupt *interrupt)
{
    return interrupt && interrupt->check(interrupt->user);
}

/*
 * Wait until `changed` is signalled, or for some milliseconds, because an interrupt signals
 * nothing. Call it with `lock` held, and in a loop. Returns 0, or -EINTR if interrupted.
 */
static inline int fs_wait_for_change(pthread_cond_t *changed, pthread_mutex_t *lock,
                                     const struct fs_interrupt *interrupt)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 50000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(changed, lock, &until);
    return fs_is_interrupted(interrupt) ? -EINTR : 0;
}
