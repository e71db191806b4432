#define FUSE_USE_VERSION 314
#include "fs/mount/attach.h"

#include "fs/mount/log.h"
#include "fs/mount/mount_table.h"
#include "fs/mount/requirements.h"

#include <fuse_lowlevel.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
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

int fs_attach(struct fuse_session *session, const struct fs_mountpoint *mountpoint)
{
    int error;

    /* Mount on the directory that was checked, even if its path leads elsewhere by now. */
    if (fchdir(mountpoint->descriptor) != 0) {
        fs_complain(mountpoint->path, NULL, "%s", strerror(errno));
        return EX_OSERR;
    }
    if (fuse_session_mount(session, ".") != 0) {
        error = errno;
        fs_complain(mountpoint->path, NULL, "the mount was refused");
        fs_requirements_explain_refusal(error);
        return EX_OSERR;
    }
    if (chdir("/") != 0)
        fs_complain("/", NULL, "%s", strerror(errno));
    if (geteuid() == 0)
        set_read_ahead(mountpoint->path);
    return EX_OK;
}
