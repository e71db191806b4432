/*
 * Mounts a model file with ggufs in a private directory. All of this runs in the keeper's process
 * (keeper.h), which blocks the signals that end a program.
 */
#ifndef GGUFS_RUNNER_PRIVATE_MOUNT_H
#define GGUFS_RUNNER_PRIVATE_MOUNT_H

#include "contrib/runner/cli/run_options.h"

#include <sys/types.h>

struct run_private_mount {
    pid_t server;      /* ggufs; 0: none */
    char *folder;      /* the mount point, owned; NULL once it is removed */
    int messages;      /* a file in memory that ggufs writes to; -1: none */
    off_t bytes_shown; /* of the messages already printed to stderr */
};

/*
 * Start ggufs, wait until the tree is mounted, and store a descriptor of its directory in *tree_fd,
 * which the caller closes. Returns 0, or prints an error and returns an exit status; if ggufs
 * failed, these are its messages and its exit status. Gives up if the other end of `control` is
 * closed. Call run_private_mount_end() in any case.
 *
 * `signals` is the signal mask that ggufs gets.
 */
int run_private_mount_start(const char *model, const struct run_texts *options,
                            const sigset_t *signals, int control, struct run_private_mount *mount,
                            int *tree_fd);

/*
 * Detach the mount from the file system; its open files still work. If that fails, ggufs may still
 * unmount when it ends.
 */
void run_private_mount_detach(struct run_private_mount *mount);

/*
 * End ggufs, even if files of the tree are open, and remove the mount. Returns 0, or prints what is
 * left and how to remove it and returns EX_OSERR.
 */
int run_private_mount_end(struct run_private_mount *mount);

#endif
