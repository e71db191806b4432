#define FUSE_USE_VERSION 314
#include "fs/mount/attach.h"

#include "fs/mount/log.h"
#include "fs/mount/mount_table.h"
#include "fs/mount/requirements.h"

#include <fuse_lowlevel.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

/*
 * Set how far the kernel reads ahead on the file system at `path`, which only root may do. It takes
 * effect if the server agrees when the session begins. The path is not looked up: on an automount
 * point, that would wait for the end of the very mount that is being made.
 */
static void set_read_ahead(const char *path)
{
    struct fs_mount_table mounts;
    const struct fs_mount_entry *mount =
        fs_mount_table_read(&mounts) == 0 ? fs_mount_table_find(&mounts, path) : NULL;
    FILE *file = NULL;
    char name[64];

    if (mount) {
        snprintf(name, sizeof name, "/sys/class/bdi/%u:%u/read_ahead_kb", mount->major,
                 mount->minor);
        file = fopen(name, "we");
    }
    if (file) {
        fprintf(file, "%u\n", FS_READ_AHEAD_BYTES >> 10);
        fclose(file);
    }
    fs_mount_table_free(&mounts);
}

enum { N_LOOKED_AT = 8 };

/* Return which of the descriptors from `first` on are open, one bit for each. */
static unsigned open_descriptors(int first)
{
    unsigned open = 0;

    for (int i = 0; i < N_LOOKED_AT; i++) {
        if (fcntl(first + i, F_GETFD) >= 0)
            open |= 1u << i;
    }
    return open;
}

/* Return a socket that was opened since `open_before` was taken, or -1. */
static int find_new_socket(int first, unsigned open_before)
{
    const unsigned opened = open_descriptors(first) & ~open_before;

    for (int i = 0; i < N_LOOKED_AT; i++) {
        struct stat status;

        if ((opened >> i & 1) && fstat(first + i, &status) == 0 && S_ISSOCK(status.st_mode))
            return first + i;
    }
    return -1;
}

int fs_attach(struct fuse_session *session, const struct fs_mountpoint *mountpoint,
              int descriptors[FS_MOUNT_DESCRIPTORS], size_t *n_descriptors)
{
    const int first_free = dup(STDIN_FILENO);
    unsigned open_before;
    int socket, error;

    /* Mount on the directory that was checked, even if its path leads elsewhere by now. */
    if (first_free < 0 || fchdir(mountpoint->descriptor) != 0) {
        fs_complain(mountpoint->path, NULL, "%s", strerror(errno));
        return EX_OSERR;
    }
    close(first_free);
    open_before = open_descriptors(first_free);
    if (fuse_session_mount(session, ".") != 0) {
        error = errno;
        fs_complain(mountpoint->path, NULL, "the mount was refused");
        fs_requirements_explain_refusal(error);
        return EX_OSERR;
    }
    if (chdir("/") != 0)
        fs_complain("/", NULL, "%s", strerror(errno));
    if (fs_mountpoint_verify_or_unmount(mountpoint) != EX_OK)
        return EX_OSERR;
    if (geteuid() == 0)
        set_read_ahead(mountpoint->path);
    descriptors[0] = fuse_session_fd(session);
    *n_descriptors = 1;
    /* libfuse leaves this socket open and does not return it. */
    socket = find_new_socket(first_free, open_before);
    if (socket >= 0)
        descriptors[(*n_descriptors)++] = socket;
    return EX_OK;
}
