/*
 * The processes behind a mount. The server parses the model and answers the kernel; before that it
 * is confined (fs/mount/sandbox.h). Its parent, the keeper, mounts once the server is ready, waits
 * for its end, and clears the mount away however the server ends. In the background the keeper has
 * a session of its own, and the process that the user started returns when the server answers.
 */
#pragma once

#include "fs/mount/descriptors.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Descriptors that the keeper passes to the server: /dev/fuse, and others that must stay open. */
#define FS_MOUNT_DESCRIPTORS FS_MOST_DESCRIPTORS

struct fs_daemon {
    const char *model, *mountpoint; /* absolute paths */
    bool foreground;
    bool sandbox;
    unsigned timeout_seconds; /* unmount when unused for so long; 0: never */

    /* Each returns an exit status, and prints the error to stderr if that is not EX_OK. */

    /* Runs in the server before it is confined. */
    int (*prepare)(void *argument);
    /* Runs in the server, confined, before anything is mounted. */
    int (*load)(void *argument);
    /*
     * Runs in the keeper once the server has loaded. Mounts, and stores the descriptors that the
     * caller must close; the first is /dev/fuse. *n_descriptors is at least 1.
     */
    int (*mount)(void *argument, int descriptors[FS_MOUNT_DESCRIPTORS], size_t *n_descriptors);
    /*
     * Runs in the server: answers the kernel's INIT. Takes ownership of the descriptor. Signals are
     * blocked when it is called.
     */
    int (*begin)(void *argument, int fuse_descriptor);
    /* Runs in the server until the file system is unmounted. */
    int (*serve)(void *argument);

    /* Runs in the keeper. Returns the seconds since the last use of the tree. */
    uint64_t (*idle_seconds)(void *argument);

    void *argument; /* passed to all of them */
};

/*
 * Start the processes and return in each of them, with its exit status: in the process that the
 * user started, with EX_OK once the tree can be read; in the server, when it has ended; in the
 * keeper, which in the foreground is the caller, when the mount is gone. Prints errors to stderr.
 * Call it while there is a single thread.
 *
 * Signals are blocked on return; *before is the earlier mask. A signal that ended the command
 * before it had mounted is still pending: restoring *before ends the process by that signal.
 */
int fs_daemon_run(const struct fs_daemon *daemon, sigset_t *before);
