#define FUSE_USE_VERSION 314
#include "fs/mount/mountpoint.h"

#include "fs/mount/log.h"
#include "fs/mount/mount_table.h"
#include "fs/mount/requirements.h"
#include "gguf/support/strings.h"

#include <fuse_lowlevel.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

/* Print which FUSE file system is mounted on the directory, if one is. */
static bool report_mount(const char *path)
{
    struct fs_mount_table mounts;
    const struct fs_mount_entry *mount =
        fs_mount_table_read(&mounts) == 0 ? fs_mount_table_find(&mounts, path) : NULL;
    /* Advise to unmount FUSE file systems only, never a disk. */
    const bool is_fuse = mount && gguf_text_starts_with(mount->type, "fuse");

    if (is_fuse)
        fs_complain(path, "fusermount3 -u",
                    "%s is already mounted here (type %s); unmount it first", mount->source,
                    mount->type);
    fs_mount_table_free(&mounts);
    return is_fuse;
}

/* Return 1 if the directory is empty, 0 if not, or a negative errno. */
static int is_empty(int descriptor)
{
    struct dirent **entries;
    const int n = scandirat(descriptor, ".", &entries, NULL, NULL);

    if (n < 0)
        return -errno;
    for (int i = 0; i < n; i++)
        free(entries[i]);
    free(entries);
    return n <= 2; /* "." and ".." */
}

/*
 * Open the directory at `path`. Returns an O_PATH descriptor, or a negative errno. The path has no
 * slash at its end and is not opened as a directory: either would trigger an automount.
 */
static int open_directory(const char *path)
{
    size_t length = strlen(path);
    char *bare = strdup(path);
    struct stat status;
    int descriptor;

    while (bare && length > 1 && bare[length - 1] == '/')
        bare[--length] = '\0';
    descriptor = bare ? open(bare, O_PATH | O_CLOEXEC) : -1;
    free(bare);
    if (descriptor < 0 || fstat(descriptor, &status) != 0)
        return -errno;
    if (S_ISDIR(status.st_mode))
        return descriptor;
    close(descriptor);
    return -ENOTDIR;
}

/* Return the absolute path of an open directory, or NULL with errno set. The caller frees it. */
static char *path_of(int descriptor)
{
    char link[32], path[PATH_MAX];
    ssize_t length;

    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return NULL;
    path[length] = '\0';
    return strdup(path);
}

/* Print why the mount point cannot be used or, if it `is_missing`, made. */
static int refuse(const char *path, int error, bool is_missing)
{
    static const struct {
        int error;
        bool is_missing;
        const char *command, *text;
    } reasons[] = {
        {ENOTDIR, false, NULL,
         "the mount point, the last argument, is not a directory: ggufs MODEL... MOUNTPOINT"},
        {ENOTCONN, false, "fusermount3 -u",
         "a dead mount is in the way (\"Transport endpoint is not connected\": its daemon is "
         "gone); "
         "clear it first"},
        {ENOENT, true, "mkdir -p",
         "the mount point does not exist, and neither does the directory that it would be made in; "
         "create it first"},
        {EEXIST, true, NULL,
         "the mount point is a symbolic link to nothing; name a directory, or make the one that "
         "the link points to"},
    };

    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        if (reasons[i].error != error || (reasons[i].is_missing && !is_missing))
            continue;
        fs_complain(path, reasons[i].command, "%s", reasons[i].text);
        return EX_CANTCREAT;
    }
    if (is_missing && (error == EACCES || error == EPERM || error == EROFS))
        fs_complain(path, NULL, "the mount point does not exist and cannot be made here: %s",
                    strerror(error));
    else
        fs_complain(path, NULL, "the mount point cannot be opened: %s%s", strerror(error),
                    error == EMFILE ? "; raise the limit of open files (ulimit -n)" : "");
    return error == EMFILE || error == ENOMEM ? EX_OSERR : EX_CANTCREAT;
}

static int check_directory(const char *path, const struct fs_mountpoint *mountpoint, bool nonempty)
{
    const int result = is_empty(mountpoint->descriptor);

    if (result < 0)
        return refuse(path, -result, false);
    if (result > 0 || nonempty)
        return EX_OK;
    if (!report_mount(mountpoint->path))
        fs_complain(path, NULL,
                    "the mount point is not empty; mount on an empty directory, or add "
                    "-o nonempty to hide its files");
    return EX_CANTCREAT;
}

int fs_mountpoint_open(const char *path, const struct fs_mount_options *options,
                       struct fs_mountpoint *mountpoint)
{
    int descriptor, status;

    *mountpoint = (struct fs_mountpoint){.descriptor = -1};
    if (path[0] == '\0') {
        fprintf(stderr, "ggufs: the name of the mount point is empty\n");
        return EX_CANTCREAT;
    }
    descriptor = open_directory(path);
    if (descriptor == -ENOENT) {
        mountpoint->is_made = mkdir(path, 0777) == 0;
        if (!mountpoint->is_made && errno != EEXIST)
            return refuse(path, errno, true);
        descriptor = open_directory(path);
    }
    if (descriptor < 0)
        return refuse(path, descriptor == -ENOENT ? EEXIST : -descriptor, descriptor == -ENOENT);
    mountpoint->descriptor = descriptor;
    mountpoint->path = path_of(descriptor);
    status = mountpoint->path ? check_directory(path, mountpoint, options->nonempty)
                              : fs_requirements_refuse_no_path(errno);
    if (status == EX_OK)
        status = fs_requirements_check();
    if (status != EX_OK) {
        fs_mountpoint_remove(mountpoint);
        fs_mountpoint_close(mountpoint);
    }
    return status;
}

void fs_mountpoint_remove(const struct fs_mountpoint *mountpoint)
{
    if (mountpoint->is_made && mountpoint->path)
        rmdir(mountpoint->path);
}

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

int fs_mountpoint_mount(const struct fs_mountpoint *mountpoint, struct fuse_session *session)
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

void fs_mountpoint_close_descriptor(struct fs_mountpoint *mountpoint)
{
    if (mountpoint->descriptor >= 0)
        close(mountpoint->descriptor);
    mountpoint->descriptor = -1;
}

void fs_mountpoint_close(struct fs_mountpoint *mountpoint)
{
    fs_mountpoint_close_descriptor(mountpoint);
    free(mountpoint->path);
    mountpoint->path = NULL;
}
