#include "contrib/runner/tree/open_below.h"

#include "gguf/support/strings.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* openat2() fails with EAGAIN if a directory was renamed meanwhile. */
#define MAX_TRIES 16

/* Read the path of an open file. Returns false without /proc. */
static bool get_path(int fd, char path[PATH_MAX])
{
    char link[32];
    ssize_t length;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, path, PATH_MAX - 1);
    path[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* For Linux before 5.6, and filters that refuse openat2(): open the file, then compare paths. */
static int open_and_compare(int tree_fd, const char *path, int flags)
{
    char tree[PATH_MAX], file[PATH_MAX];
    const int fd = openat(tree_fd, path, flags);
    size_t length;

    if (fd < 0)
        return -errno;
    if (get_path(tree_fd, tree) && get_path(fd, file)) {
        length = strcmp(tree, "/") == 0 ? 0 : strlen(tree);
        if (strncmp(file, tree, length) == 0 && file[length] == '/')
            return fd;
    }
    close(fd);
    return -EXDEV;
}

int run_open_below(int tree_fd, const char *path, int flags)
{
    const struct open_how how = {
        .flags = (unsigned)(flags | O_CLOEXEC),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    int fd = -1;

    for (int i = 0; i < MAX_TRIES; i++) {
        fd = (int)syscall(SYS_openat2, tree_fd, path, &how, sizeof how);
        if (fd >= 0)
            return fd;
        if (errno != EAGAIN)
            break;
    }
    if (errno != ENOSYS && errno != EPERM)
        return -errno;
    return open_and_compare(tree_fd, path, flags | O_CLOEXEC);
}

const char *run_open_below_error(int code)
{
    return code == -EXDEV ? "a symbolic link leads out of the tree" : strerror(-code);
}

/*
 * Return true if a line of /proc/self/mountinfo is of a mount of ggufs by the caller or root:
 * "36 35 0:42 / /path options - fuse.ggufs source rw,user_id=1000,…", proc_pid_mountinfo(5).
 */
static bool is_trusted(const char *line)
{
    const char *type = strstr(line, " - "), *options = strrchr(line, ' ');
    const char *owner = options ? strstr(options, "user_id=") : NULL;
    unsigned long user;

    if (!type || !owner || !gguf_text_starts_with(type, " - fuse.ggufs "))
        return false;
    user = strtoul(owner + strlen("user_id="), NULL, 10);
    return user == 0 || user == geteuid();
}

bool run_is_on_own_mount(int fd)
{
    FILE *table = fopen("/proc/self/mountinfo", "re");
    char *line = NULL;
    bool is_own = false;
    struct stat status;
    size_t room = 0;

    if (table && fstat(fd, &status) == 0) {
        unsigned device_major, device_minor;

        while (!is_own && getline(&line, &room, table) > 0)
            is_own = sscanf(line, "%*s %*s %u:%u", &device_major, &device_minor) == 2 &&
                     makedev(device_major, device_minor) == status.st_dev && is_trusted(line);
    }
    free(line);
    if (table)
        fclose(table);
    return is_own;
}
