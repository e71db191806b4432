/*
 * The keeper: a process that clears away what a run leaves behind, however the run ends. The
 * process that reads the model confines itself and can then neither unmount nor rename a file; the
 * keeper can, and reads nothing of the model. It acts when the socket between the two is closed,
 * which the kernel does even for a process that is killed.
 */
#ifndef GGUFS_RUNNER_KEEPER_H
#define GGUFS_RUNNER_KEEPER_H

#include "contrib/runner/cli/run_options.h"

#include <sys/types.h>

/* The keeper removes these. */
struct run_kept {
    const char *model;                     /* a model file to mount; NULL: none */
    const struct run_texts *mount_options; /* of that mount */
    const char *target; /* a regular file to write, which appears when it is complete; NULL: none */
};

struct run_keeper {
    pid_t process; /* 0: none */
    int control;   /* this end of the socket; -1: none */
};

/*
 * Start the keeper. *target_fd becomes a new file beside the target, to be committed when it is
 * written, and *tree_fd the directory of the model's tree; both are for the caller to close, and -1
 * where there is no such thing. The mount is taken out of the file system at once, the new file
 * removed at the end unless it was committed. Returns an exit status; what failed has been printed.
 * Call it while there is a single thread.
 */
int run_keeper_start(const struct run_kept *kept, struct run_keeper *keeper, int *target_fd,
                     int *tree_fd);

/* Have the new file renamed to its target. Returns 0 or a negative errno. */
int run_keeper_commit(struct run_keeper *keeper);

/*
 * Have everything cleared away and wait for that. Files of the tree may still be open, but must not
 * be read any more. Returns 0, or an exit status if something is left, which has been printed.
 */
int run_keeper_end(struct run_keeper *keeper);

#endif
