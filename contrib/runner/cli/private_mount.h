/*
 * A model file, mounted by ggufs where nobody else sees it. All of this runs in the keeper's
 * process (keeper.h), which blocks the signals that end a program.
 */
#ifndef GGUFS_RUNNER_PRIVATE_MOUNT_H
#define GGUFS_RUNNER_PRIVATE_MOUNT_H

#include "contrib/runner/cli/run_options.h"

#include <sys/types.h>

struct run_private_mount {
    pid_t server;      /* ggufs; 0: none */
    char *folder;      /* the mount point, owned; NULL once it is removed */
    int messages;      /* a file in memory that ggufs writes to; -1: none */
    off_t bytes_shown; /* of the messages, on stderr */
};

/*
 * Start ggufs, wait until the tree is there, and store a descriptor of its directory in *tree_fd,
 * for the caller to close. Returns 0, the exit status of ggufs if it failed, having printed its
 * messages, or another exit status, having printed why. Gives up if `control` is closed at its
 * other end. run_private_mount_end() is to be called in any case.
 *
 * `signals` is the signal mask that ggufs gets.
 */
int run_private_mount_start(const char *model, const struct run_texts *options,
                            const sigset_t *signals, int control, struct run_private_mount *mount,
                            int *tree_fd);

/*
 * Take the mount out of the file system, where open files of it go on working. If that fails, ggufs
 * may still do it when it ends.
 */
void run_private_mount_detach(struct run_private_mount *mount);

/*
 * End ggufs, which no file of the tree keeps from ending, and remove the mount. Returns 0, or
 * EX_OSERR having printed what is left and how to remove it.
 */
int run_private_mount_end(struct run_private_mount *mount);

#endif
