/* The whole life of a mount. */
#pragma once

#include "fs/mount/mount_options.h"
#include "fs/tree/tree.h"
#include "gguf/files.h"

#include <stdint.h>

/* The tree to mount, and where. */
struct fs_mount {
    const char *mountpoint;
    const struct gguf_files *files; /* opened; all other descriptors but 0, 1 and 2 are closed */
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
