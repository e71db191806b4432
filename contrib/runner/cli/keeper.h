/*
 * The keeper: a process that removes the mount and temporary files after a run, however the run
 * ends. The process that reads the model is confined and can neither unmount nor rename files; the
 * keeper can, and reads nothing of the model. It acts when the socket between the two is closed,
 * which the kernel does even for a killed process.
 */
#ifndef GGUFS_RUNNER_KEEPER_H
#define GGUFS_RUNNER_KEEPER_H

#include "contrib/runner/cli/run_options.h"

#include <sys/types.h>

/* The objects that the keeper makes and removes. */
struct run_kept {
    const char *model;                     /* a model file to mount; NULL: none */
    const struct run_texts *mount_options; /* of that mount */
    const char *target; /* a regular file to write, which gets this name when complete; or NULL */
};

struct run_keeper {
    pid_t process; /* 0: none */
    int control;   /* this end of the socket; -1: none */
};

/*
 * Start the keeper. Stores in *target_fd a new file next to the target, to be committed when it is
 * written, and in *tree_fd the directory of the model's tree; each is -1 if not requested, and the
 * caller closes both. The mount is detached from the file system at once; the new file is removed
 * at the end unless it was committed. Returns an exit status, and prints errors. Call it while
 * there is a single thread.
 */
int run_keeper_start(const struct run_kept *kept, struct run_keeper *keeper, int *target_fd,
                     int *tree_fd);

/* Have the new file renamed to its target. Returns 0 or a negative errno. */
int run_keeper_commit(struct run_keeper *keeper);

/*
 * Have the keeper remove everything, and wait for it. Files of the tree may still be open but must
 * not be read any more. Returns 0; if something could not be removed, prints that and returns an
 * exit status.
 */
int run_keeper_end(struct run_keeper *keeper);

#endif
