/*
 * The processes behind a mount. The server parses the model and answers the kernel; before that it
 * is confined (fs/mount/sandbox.h). Its parent, the keeper, mounts once the server is ready, waits
 * for its end, and clears the mount away however the server ends. In the background the keeper has
 * a session of its own, and the process that the user started returns when the server answers.
 */
#pragma once

#include "fs/mount/mountpoint.h"
#include "fs/mount/opener.h"
#include "fs/mount/serve.h"
#include "fs/mount/server.h"

#include <signal.h>

struct fs_session {
    const struct fs_mount *mount;
    struct fs_mountpoint mountpoint;
    struct fuse_session *fuse;
    struct fs_server server;
    struct fs_opener opener; /* of many models */
    sigset_t signals;        /* the mask of the caller, to serve with */
};

/* The work of the processes; each returns an exit status, and prints the error if it is not EX_OK.
 */

/* Runs in the server before it is confined. */
int fs_session_prepare(struct fs_session *session);
/* Runs in the server, confined, before anything is mounted. */
int fs_session_load(struct fs_session *session);
/* Runs in the keeper once the server has loaded: mounts. */
int fs_session_mount(struct fs_session *session);
/*
 * Runs in the server: answers the kernel's INIT. Takes ownership of /dev/fuse. Signals are blocked
 * when it is called.
 */
int fs_session_begin(struct fs_session *session, int fuse_descriptor);
/* Runs in the server until the file system is unmounted. */
int fs_session_run(struct fs_session *session);

/*
 * Start the processes and return in each of them, with its exit status: in the process that the
 * user started, with EX_OK once the tree can be read; in the server, when it has ended; in the
 * keeper, which in the foreground is the caller, when the mount is gone. Prints errors to stderr.
 * Call it while there is a single thread.
 *
 * Signals are blocked on return; session->signals is the earlier mask. A signal that ended the
 * command before it had mounted is still pending: restoring the mask ends the process by it.
 */
int fs_daemon_run(struct fs_session *session);
