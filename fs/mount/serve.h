/* The whole life of a mount. */
#pragma once

#include "fs/mount/mount_options.h"
#include "fs/models/model_set.h"

#include <stdint.h>

/* The tree to mount, and the place. */
struct fs_mount {
    const char *source; /* as the table of mounts shows it */
    const char *mountpoint;
    const struct fs_models *models; /* NULL: the tree of a single model */
    int *descriptors;               /* of opened files; all others but 0, 1 and 2 are closed */
    size_t n_descriptors;
    const struct fs_mount_options *options;

    /*
     * Parse the files and make the tree. Runs in the confined server, which cannot open files,
     * before anything is mounted. The tree must stay valid until fs_serve() returns in the same
     * process. Returns an exit status, and prints the error if that is not EX_OK.
     */
    int (*load)(void *argument, struct fs_tree **tree);
    void *argument;

    uint64_t content_options; /* hash of the options that change the tree */
};

/*
 * Mount the tree and have it served by separate processes (fs/mount/daemon.h) until it is unmounted
 * or a signal ends it. Returns the exit status (sysexits.h) in each process: in the caller when the
 * tree can be read, or, with options->foreground, when the mount is gone. Prints errors to stderr.
 */
int fs_serve(const struct fs_mount *mount);
