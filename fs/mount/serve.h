/* A mount from its start to its end. */
#ifndef GGUFS_FS_SERVE_H
#define GGUFS_FS_SERVE_H

#include "fs/mount/mount_options.h"
#include "fs/tree/tree.h"
#include "gguf/files.h"

/* What is to be mounted, and where. */
struct fs_mount {
    const char *mountpoint;
    const struct gguf_files *files; /* opened; all other descriptors but 0, 1 and 2 are closed */
    struct fs_mount_options *options;

    /*
     * Parse the files and make the tree. Runs in the server, which can then open nothing any more,
     * before anything is mounted. The tree must stay until fs_serve() returns in the same process.
     * Returns an exit status, and prints why if that is not EX_OK.
     */
    int (*load)(void *argument, struct fs_tree **tree);
    void *argument;
};

/*
 * Mount the tree and have it served by processes of their own (fs/mount/daemon.h) until it is
 * unmounted or a signal ends it. Returns the exit status (sysexits.h) in each of the processes: in
 * the caller's when the tree is there, or, with options->foreground, when it is gone. Prints what
 * goes wrong to stderr.
 */
int fs_serve(const struct fs_mount *mount);

#endif
