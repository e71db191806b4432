/* Lets a caller withdraw its request for a long computation. */
#ifndef GGUFS_FS_INTERRUPT_H
#define GGUFS_FS_INTERRUPT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * `check(user)` returns true once nobody waits for the result any more. Called from time to time by
 * the computing thread.
 */
struct fs_interrupt {
    bool (*check)(void *user);
    void *user;
};

/* Return true if the request was withdrawn. `interrupt` may be NULL: then it never is. */
static inline bool fs_is_interrupted(const struct fs_interrupt *interrupt)
{
    return interrupt && interrupt->check(interrupt->user);
}

#endif
