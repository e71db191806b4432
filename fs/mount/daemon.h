/*
 * The processes behind a mount. The server parses the model and answers the kernel; before that it
 * is confined (fs/mount/sandbox.h). Its parent, the keeper, mounts once the server is ready, waits
 * for its end, and clears the mount away however the server ends. In the background the keeper has
 * a session of its own, and the process that the user started returns when the server answers.
 */
#ifndef GGUFS_FS_DAEMON_H
#define GGUFS_FS_DAEMON_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* What the keeper hands to the server: /dev/fuse, and what else the mount must keep open. */
#define FS_MOUNT_DESCRIPTORS 2

struct fs_daemon {
    const char *mountpoint; /* absolute path */
    bool foreground;
    bool sandbox;

    /* Each returns an exit status, and prints to stderr why if that is not EX_OK. */

    /* Runs in the server before it is confined. */
    int (*prepare)(void *argument);
    /* Runs in the server, confined, before anything is mounted. */
    int (*load)(void *argument);
    /*
     * Runs in the keeper when the server has loaded. Mounts, and returns the descriptors, which the
     * caller closes, in `descriptors`; the first is /dev/fuse. *n_descriptors is at least 1.
     */
    int (*mount)(void *argument, int descriptors[FS_MOUNT_DESCRIPTORS], size_t *n_descriptors);
    /* Runs in the server until the file system is unmounted; takes over the descriptor. Signals
       are blocked when it is called. */
    int (*serve)(void *argument, int fuse_descriptor);
    /* Runs in the process that the user started when the tree can be read; not in the foreground.
     */
    void (*watch)(void *argument);

    void *argument; /* of all */
};

/*
 * Start the processes and return in each of them with its exit status: in the process that the user
 * started with EX_OK when the tree can be read, in the server when that has ended, and in the
 * keeper, which in the foreground is the caller, when nothing is mounted any more. What fails is
 * printed to stderr. Call it while there is a single thread.
 *
 * Signals are blocked on return. A signal that ended the command before the mount was there is
 * pending then, so that restoring the mask from *before ends the process by it.
 */
int fs_daemon_run(const struct fs_daemon *daemon, sigset_t *before);

#endif
