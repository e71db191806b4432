#include "fs/tree/core/interrupt.h"

#include <errno.h>
#include <time.h>

/* How often waiting threads check for an interrupt. */
#define POLL_NANOSECONDS 50000000

int fs_wait_for_change(pthread_cond_t *changed, pthread_mutex_t *lock,
                       const struct fs_interrupt *interrupt)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += POLL_NANOSECONDS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(changed, lock, &until);
    return fs_is_interrupted(interrupt) ? -EINTR : 0;
}
