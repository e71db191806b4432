#include "fs/mount/mountpoint.h"

#include "fs/mount/complain.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

static bool is_empty(DIR *directory)
{
    const struct dirent *entry;

    while ((entry = readdir(directory))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            return false;
    }
    return true;
}

/* Prints which FUSE file system is mounted on `path`, if one is. */
static bool tell_mount(const char *path)
{
    char *real = realpath(path, NULL);
    FILE *mounts = setmntent("/proc/self/mounts", "re");
    const struct mntent *entry;
    bool found = false;

    while (real && mounts && !found && (entry = getmntent(mounts))) {
        /* Nobody should unmount their disk because of us. */
        if (strcmp(entry->mnt_dir, real) != 0 || strncmp(entry->mnt_type, "fuse", 4) != 0)
            continue;
        fs_complain(real, "fusermount3 -u",
                    "%s is mounted here already (type %s); unmount it first", entry->mnt_fsname,
                    entry->mnt_type);
        found = true;
    }
    if (mounts)
        endmntent(mounts);
    free(real);
    return found;
}

static int check_directory(const char *path, bool nonempty)
{
    DIR *directory = opendir(path);
    const int error = errno;
    bool empty;

    if (directory) {
        empty = is_empty(directory);
        closedir(directory);
        if (empty || nonempty)
            return EX_OK;
        if (!tell_mount(path))
            fs_complain(path, NULL,
                        "the mount point is not empty; mount on an empty directory, or add "
                        "-o nonempty to hide what is in it");
        return EX_CANTCREAT;
    }
    switch (error) {
    case ENOENT:
        fs_complain(path, "mkdir -p", "the mount point does not exist; make it first");
        break;
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
    default:
        fs_complain(path, NULL, "the mount point can't be opened: %s", strerror(error));
        return error == ENOMEM ? EX_OSERR : EX_CANTCREAT;
    }
    return EX_CANTCREAT;
}

static int check_device(void)
{
    const int descriptor = open("/dev/fuse", O_RDWR | O_CLOEXEC);

    if (descriptor >= 0) {
        close(descriptor);
        return EX_OK;
    }
    if (errno == ENOENT || errno == ENODEV || errno == ENXIO)
        fprintf(stderr, "ggufs: /dev/fuse is missing: load the kernel's module with \"modprobe "
                        "fuse\", or give the container the device (docker run --device /dev/fuse "
                        "--cap-add SYS_ADMIN)\n");
    else
        fprintf(stderr,
                "ggufs: /dev/fuse can't be opened: %s; root can allow it: chmod 666 /dev/fuse\n",
                strerror(errno));
    return EX_UNAVAILABLE;
}

/* Where libfuse looks for it: its own folder, then the path. */
static bool has_fusermount(void)
{
    const char *path = getenv("PATH");
    char *folders = strdup(path ? path : "");
    bool found = access("/usr/bin/fusermount3", X_OK) == 0;
    char *rest = NULL;

    for (char *folder = folders ? strtok_r(folders, ":", &rest) : NULL; folder && !found;
         folder = strtok_r(NULL, ":", &rest)) {
        char *file = NULL;

        if (asprintf(&file, "%s/fusermount3", folder) > 0) {
            found = access(file, X_OK) == 0;
            free(file);
        }
    }
    free(folders);
    return found;
}

int fs_mountpoint_check(const char *path, const struct fs_mount_options *options)
{
    int status = check_directory(path, options->nonempty);

    if (status == EX_OK)
        status = check_device();
    if (status != EX_OK)
        return status;
    /* Root mounts without its help. */
    if ((geteuid() != 0 || options->auto_unmount) && !has_fusermount()) {
        fprintf(stderr, "ggufs: fusermount3 is missing, which mounts for you; install it: "
                        "apt-get install fuse3\n");
        return EX_UNAVAILABLE;
    }
    return EX_OK;
}
