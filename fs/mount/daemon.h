/*
 * The processes behind a mount. The server answers the kernel and may do little else
 * (fs/mount/sandbox.h). Its parent, the keeper, waits for it and clears the mount away however the
 * server ends. Unless it runs in the foreground, the process that the user started returns as soon
 * as the server is ready.
 */
#ifndef GGUFS_FS_DAEMON_H
#define GGUFS_FS_DAEMON_H

#include <signal.h>
#include <stdbool.h>

struct fs_daemon {
    const char *mountpoint; /* absolute; mounted already */
    int fuse_descriptor;    /* the keeper and the caller close theirs */
    bool foreground;
    bool sandbox;

    /* Runs in the server before that enters the sandbox, while it has the terminal. */
    void (*prepare)(void *argument);

    /*
     * Runs in the server until the file system is unmounted; returns the exit status. Signals are
     * blocked when it is called.
     */
    int (*serve)(void *argument);

    /* Runs in the caller, with its rights and its terminal, beside the server. */
    void (*watch)(void *argument);

    void *argument; /* of the three */
};

/*
 * Blocks the signals that end a daemon, of which none may be lost or end a process between the
 * mount and its server. `before` gets the mask as it was.
 */
void fs_daemon_block_signals(sigset_t *before);

/*
 * Starts the processes and returns in each of them with its exit status: in the caller's with EX_OK
 * when the server is ready, in the server when that has ended, and in the keeper, which in the
 * foreground is the caller, when then nothing is mounted any more. What fails is printed to stderr.
 * Must be called while there is a single thread, with signals blocked since before the mount.
 */
int fs_daemon_run(const struct fs_daemon *daemon);

#endif
