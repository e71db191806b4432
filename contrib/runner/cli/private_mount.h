/*
 * A model file, mounted by ggufs where nobody else sees it.
 */
#ifndef GGUFS_RUNNER_PRIVATE_MOUNT_H
#define GGUFS_RUNNER_PRIVATE_MOUNT_H

#include "contrib/runner/cli/run_options.h"

#include <sys/types.h>

struct run_private_mount {
    int fd;       /* of the tree's directory; whoever has opened the tree closes it, to -1 */
    pid_t server; /* 0: none */
    char *folder; /* owned; NULL once it is removed */
    int messages; /* a file in memory that ggufs writes to; -1: none */
    off_t n_told; /* bytes of it that the user has seen */
};

/*
 * Starts ggufs and waits until the tree is there. The mount is then taken out of the file system at
 * once: it lasts as long as this process has a file of it open, and so ends with it, however that
 * ends. Returns the exit status: that of ggufs if it failed, which has then said why.
 */
int run_private_mount_open(const char *model, const struct run_texts *options,
                           struct run_private_mount *mount);

/* Ends ggufs. Nothing of the tree may be read any more, but files of it may be open. */
void run_private_mount_close(struct run_private_mount *mount);

#endif
