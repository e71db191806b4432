#include "fs/mount/mountpoint.h"

#include "fs/mount/complain.h"
#include "fs/mount/mount_table.h"
#include "fs/mount/requirements.h"
#include "gguf/support/file_status.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

/* Symbolic links followed as the last component of a path. */
#define MAX_LINKS 8

#define DIRECTORY_FLAGS (O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* The keeper of an earlier mount has this long to remove the directory that it made. */
#define REMOVAL_MS      5000
#define REMOVAL_POLL_MS 5

/* Print which FUSE file system is mounted on the directory, if one is. */
static bool report_mount(const char *path)
{
    struct fs_mount_table mounts;
    const struct fs_mount_entry *entry =
        fs_mount_table_read(&mounts) == 0 ? fs_mount_table_find(&mounts, path) : NULL;
    /* Advise to unmount FUSE file systems only, never a disk. */
    const bool is_fuse = entry && strncmp(entry->type, "fuse", 4) == 0;

    if (is_fuse)
        fs_complain(path, "fusermount3 -u",
                    "%s is already mounted here (type %s); unmount it first", entry->source,
                    entry->type);
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

/*
 * Divide a path into the directory, whose path is *folder, for the caller to free, and the name in
 * it. Slashes at its end do not count. Returns false if out of memory.
 */
static bool divide(const char *path, char **folder, char **name)
{
    char *first = strdup(path), *second = strdup(path); /* dirname() and basename() write there */

    *folder = first ? strdup(dirname(first)) : NULL;
    *name = second ? strdup(basename(second)) : NULL;
    free(first);
    free(second);
    if (*folder && *name)
        return true;
    free(*folder);
    free(*name);
    return false;
}

/*
 * Open the directory in which a missing mount point is made. Returns 0 or a negative errno: -ENOENT
 * if there is none, -EEXIST if the mount point is a symbolic link to nothing, -EPROTO without
 * /proc. On success, the path is set.
 */
static int open_parent(const char *path, struct fs_mountpoint *mountpoint)
{
    struct stat status;
    char *folder, *name, *parent = NULL, *joined = NULL;
    int result = 0;

    if (!divide(path, &folder, &name))
        return -ENOMEM;
    mountpoint->parent = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (mountpoint->parent >= 0 &&
        fstatat(mountpoint->parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0)
        result = -EEXIST;
    else if (mountpoint->parent < 0 || faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) != 0)
        result = -errno;
    if (result == 0 && !(parent = path_of(mountpoint->parent)))
        result = -EPROTO; /* no /proc */
    if (result == 0 && asprintf(&joined, "%s/%s", strcmp(parent, "/") == 0 ? "" : parent, name) < 0)
        result = -ENOMEM;
    if (result == 0) {
        free(mountpoint->path);
        mountpoint->path = joined;
    }
    free(parent);
    free(folder);
    free(name);
    return result;
}

/* Print why the mount point cannot be used. */
static int refuse(const char *path, int error)
{
    switch (error) {
    case ENOTDIR:
        fs_complain(path, NULL,
                    "the mount point is not a directory (the model comes first: ggufs MODEL "
                    "MOUNTPOINT)");
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

static bool is_removed(int descriptor)
{
    struct stat status;

    return fstat(descriptor, &status) == 0 && status.st_nlink == 0;
}

/*
 * Return true if the directory was removed since it was opened. A keeper holds a lock on the
 * directory that it will remove: after an unmount, wait until that keeper has ended.
 */
static bool is_removed_soon(int descriptor)
{
    const struct timespec pause = {.tv_nsec = REMOVAL_POLL_MS * 1000000L};
    const int lock = openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (int ms = 0; ms < REMOVAL_MS && lock >= 0; ms += REMOVAL_POLL_MS) {
        if (flock(lock, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK)
            break;
        nanosleep(&pause, NULL);
    }
    if (lock >= 0)
        close(lock);
    return is_removed(descriptor);
}

int fs_mountpoint_open(const char *path, const struct fs_mount_options *options,
                       struct fs_mountpoint *mountpoint)
{
    int descriptor, result, status = EX_OK;

    *mountpoint = (struct fs_mountpoint){.descriptor = -1, .parent = -1, .lock = -1};
    if (path[0] == '\0') {
        fprintf(stderr, "ggufs: the name of the mount point is empty\n");
        return EX_CANTCREAT;
    }
    while ((descriptor = open_directory(path)) >= 0 && is_removed_soon(descriptor))
        close(descriptor);
    if (descriptor >= 0)
        status = open_existing(path, options, descriptor, mountpoint);
    else if (descriptor != -ENOENT)
        status = refuse(path, -descriptor);
    else if ((result = open_parent(path, mountpoint)) == -EPROTO)
        status = fs_requirements_refuse_no_path(ENOENT);
    else if (result < 0)
        status = refuse_missing(path, -result);
    if (status == EX_OK)
        status = fs_requirements_check(options->auto_unmount);
    if (status != EX_OK)
        fs_mountpoint_close(mountpoint);
    return status;
}

/* Make the directory in its parent, and open it. Returns 0 or a negative errno. */
static int make(struct fs_mountpoint *mountpoint)
{
    const char *name = strrchr(mountpoint->path, '/') + 1;
    struct gguf_file_status status;
    int result;

    if (mkdirat(mountpoint->parent, name, 0777) != 0)
        return -errno;
    mountpoint->descriptor = openat(mountpoint->parent, name, O_PATH | DIRECTORY_FLAGS);
    if (mountpoint->descriptor < 0)
        return -errno;
    result = gguf_get_file_status(mountpoint->descriptor, &status);
    if (result < 0)
        return result;
    /* Not every file system has locks; without one, nobody waits for the removal. */
    mountpoint->lock = openat(mountpoint->descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (mountpoint->lock >= 0)
        flock(mountpoint->lock, LOCK_EX | LOCK_NB);
    mountpoint->is_made = true;
    mountpoint->device = status.device;
    mountpoint->inode = status.inode;
    return 0;
}

int fs_mountpoint_make(struct fs_mountpoint *mountpoint)
{
    int result = 0;

    if (mountpoint->descriptor >= 0 && is_removed_soon(mountpoint->descriptor)) {
        close(mountpoint->descriptor);
        mountpoint->descriptor = -1;
        result = open_parent(mountpoint->path, mountpoint);
    }
    if (result == 0 && mountpoint->descriptor < 0)
        result = make(mountpoint);
    if (result == 0)
        return EX_OK;
    fs_complain(mountpoint->path, NULL, "the mount point cannot be made: %s%s", strerror(-result),
                result == -EEXIST ? "; it appeared meanwhile, so try again" : "");
    return EX_CANTCREAT;
}

void fs_mountpoint_remove(const struct fs_mountpoint *mountpoint)
{
    int parent = -1, descriptor = -1;
    struct gguf_file_status status;
    char *folder, *name;

    if (!mountpoint->is_made || !divide(mountpoint->path, &folder, &name))
        return;
    parent = open(folder, O_PATH | DIRECTORY_FLAGS);
    if (parent >= 0)
        descriptor = openat(parent, name, O_PATH | DIRECTORY_FLAGS);
    if (descriptor >= 0 && gguf_get_file_status(descriptor, &status) == 0 &&
        status.device == mountpoint->device && status.inode == mountpoint->inode)
        unlinkat(parent, name, AT_REMOVEDIR); /* fails if it is not empty */
    if (descriptor >= 0)
        close(descriptor);
    if (parent >= 0)
        close(parent);
    free(folder);
    free(name);
}

int fs_mountpoint_check_place(const struct fs_mountpoint *mountpoint)
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

void fs_mountpoint_close_descriptors(struct fs_mountpoint *mountpoint)
{
    if (mountpoint->descriptor >= 0)
        close(mountpoint->descriptor);
    if (mountpoint->parent >= 0)
        close(mountpoint->parent);
    mountpoint->descriptor = mountpoint->parent = -1;
}

void fs_mountpoint_close(struct fs_mountpoint *mountpoint)
{
    fs_mountpoint_close_descriptors(mountpoint);
    if (mountpoint->lock >= 0)
        close(mountpoint->lock);
    free(mountpoint->path);
    *mountpoint = (struct fs_mountpoint){.descriptor = -1, .parent = -1, .lock = -1};
}

void fs_mountpoint_explain_refusal(const struct fs_mountpoint *mountpoint, int error)
{
    fs_complain(mountpoint->path, NULL, "the mount was refused");
    fs_requirements_explain_refusal(error);
}
