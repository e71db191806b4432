#include "fs/mount/mountpoint.h"

#include "fs/mount/log.h"
#include "fs/mount/mount_table.h"
#include "fs/mount/requirements.h"
#include "gguf/support/strings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

/* Symbolic links followed as the last component of a path. */
#define MAX_LINKS 8

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
    const int listed = openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = listed < 0 ? NULL : fdopendir(listed);
    const struct dirent *entry;
    int result = 1;

    if (!directory) {
        const int error = errno;

        if (listed >= 0)
            close(listed);
        return -error;
    }
    while ((entry = readdir(directory))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            result = 0;
    }
    closedir(directory);
    return result;
}

/*
 * Return the target of an open symbolic link, relative to where `path` is, or NULL with errno set.
 * The caller frees it.
 */
static char *read_link(const char *path, int descriptor)
{
    char target[PATH_MAX], *folder, *joined = NULL;
    const ssize_t length = readlinkat(descriptor, "", target, sizeof target - 1);

    if (length < 0)
        return NULL;
    target[length] = '\0';
    if (target[0] == '/')
        return strdup(target);
    folder = strdup(path);
    if (folder && asprintf(&joined, "%s/%s", dirname(folder), target) < 0)
        joined = NULL;
    free(folder);
    return joined;
}

/*
 * Open the directory at `path`. Returns an O_PATH descriptor, or a negative errno: -EPERM for
 * another user's link.
 */
static int open_directory(const char *path)
{
    /* A slash at the end of "dir/" would hide that "dir" is a link. */
    size_t length = strlen(path);
    char *current = strdup(path);
    int result = -ELOOP;

    while (current && length > 1 && current[length - 1] == '/')
        current[--length] = '\0';
    for (int i = 0; current && i < MAX_LINKS; i++) {
        const int descriptor = open(current, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        struct stat status;
        char *target;

        if (descriptor < 0 || fstat(descriptor, &status) != 0) {
            result = -errno;
        } else if (!S_ISLNK(status.st_mode)) {
            free(current);
            if (S_ISDIR(status.st_mode))
                return descriptor;
            close(descriptor);
            return -ENOTDIR;
        } else if (status.st_uid != geteuid() && status.st_uid != 0) {
            result = -EPERM;
        } else {
            target = read_link(current, descriptor);
            close(descriptor);
            free(current);
            current = target;
            continue;
        }
        if (descriptor >= 0)
            close(descriptor);
        free(current);
        return result;
    }
    result = current ? result : -errno;
    free(current);
    return result;
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

/* Print why the mount point cannot be used. */
static int refuse(const char *path, int error)
{
    switch (error) {
    case ENOTDIR:
        fs_complain(path, NULL,
                    "the mount point, the last argument, is not a directory: ggufs MODEL... "
                    "MOUNTPOINT");
        break;
    case ENOTCONN:
        fs_complain(path, "fusermount3 -u",
                    "a dead mount is in the way (\"%s\": its daemon is gone); clear it first",
                    strerror(ENOTCONN));
        break;
    case EPERM:
        fs_complain(path, NULL,
                    "the mount point is a symbolic link that belongs to another user; name the "
                    "directory itself");
        break;
    case EMFILE:
        fs_complain(
            path, NULL,
            "the mount point cannot be opened: %s; raise the limit of open files (ulimit -n)",
            strerror(error));
        return EX_OSERR;
    default:
        fs_complain(path, NULL, "the mount point cannot be opened: %s", strerror(error));
        return error == ENOMEM ? EX_OSERR : EX_CANTCREAT;
    }
    return EX_CANTCREAT;
}

/* Print why a missing mount point cannot be made. */
static int refuse_missing(const char *path, int error)
{
    switch (error) {
    case ENOENT:
        fs_complain(path, "mkdir -p",
                    "the mount point does not exist, and neither does the directory that it would "
                    "be made in; create it first");
        break;
    case EEXIST:
        fs_complain(path, NULL,
                    "the mount point is a symbolic link to nothing; name a directory, or make the "
                    "one that the link points to");
        break;
    case EACCES:
    case EPERM:
    case EROFS:
        fs_complain(path, NULL, "the mount point does not exist and cannot be made here: %s",
                    strerror(error));
        break;
    default:
        return refuse(path, error);
    }
    return EX_CANTCREAT;
}

static int check_directory(const char *path, const struct fs_mountpoint *mountpoint, bool nonempty)
{
    const int result = is_empty(mountpoint->descriptor);

    if (result < 0)
        return refuse(path, -result);
    if (result > 0 || nonempty)
        return EX_OK;
    if (!report_mount(mountpoint->path))
        fs_complain(path, NULL,
                    "the mount point is not empty; mount on an empty directory, or add "
                    "-o nonempty to hide its files");
    return EX_CANTCREAT;
}

/* Open a directory that exists. Returns an exit status. */
static int open_existing(const char *path, const struct fs_mount_options *options, int descriptor,
                         struct fs_mountpoint *mountpoint)
{
    mountpoint->descriptor = descriptor;
    mountpoint->path = path_of(descriptor);
    return mountpoint->path ? check_directory(path, mountpoint, options->nonempty)
                            : fs_requirements_refuse_no_path(errno);
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
            return refuse_missing(path, errno);
        descriptor = open_directory(path);
    }
    if (descriptor == -ENOENT)
        return refuse_missing(path, EEXIST);
    if (descriptor < 0)
        return refuse(path, -descriptor);
    status = open_existing(path, options, descriptor, mountpoint);
    if (status == EX_OK)
        status = fs_requirements_check(options->auto_unmount);
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

int fs_mountpoint_verify_or_unmount(const struct fs_mountpoint *mountpoint)
{
    char *path = path_of(mountpoint->descriptor);
    int status = EX_OSERR;

    if (!path) {
        fs_complain(mountpoint->path, NULL, "/proc/self/fd: %s", strerror(errno));
    } else if (strcmp(path, mountpoint->path) == 0) {
        status = EX_OK;
    } else if (umount2(path, UMOUNT_NOFOLLOW | MNT_DETACH) == 0) {
        fs_complain(mountpoint->path, NULL,
                    "somebody moved the mount point to %s meanwhile; nothing is mounted", path);
    } else {
        fs_complain(path, "fusermount3 -u",
                    "somebody moved the mount point here meanwhile; a dead mount is left");
    }
    free(path);
    return status;
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
