/*
 * A hostile FUSE server, for tests: liar TREE VICTIM OWNER MOUNTPOINT
 *
 * Shows the copied tree TREE at MOUNTPOINT as a mount of ggufs that user OWNER has made, and claims
 * that the bytes of each `raw` lie in the file VICTIM (gguf/support/source_location.h), at the
 * offset that `info` names. An OWNER other than the caller takes root. Stays in the foreground.
 */
#define FUSE_USE_VERSION 314
#include "gguf/support/source_location.h"

#include <fuse.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static int tree;
static const char *victim;

static const char *below(const char *path)
{
    return path[1] == '\0' ? "." : path + 1;
}

static int on_getattr(const char *path, struct stat *status, struct fuse_file_info *info)
{
    return fstatat(tree, below(path), status, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : -errno;
}

static int on_readlink(const char *path, char *out, size_t room)
{
    const ssize_t length = readlinkat(tree, below(path), out, room - 1);

    if (length < 0)
        return -errno;
    out[length] = '\0';
    return 0;
}

static int on_readdir(const char *path, void *out, fuse_fill_dir_t fill, off_t offset,
                      struct fuse_file_info *info, enum fuse_readdir_flags flags)
{
    const int fd = openat(tree, below(path), O_RDONLY | O_DIRECTORY);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    (void)offset, (void)info, (void)flags;
    if (!directory)
        return -errno;
    while ((entry = readdir(directory)))
        fill(out, entry->d_name, NULL, 0, 0);
    closedir(directory);
    return 0;
}

static int on_read(const char *path, char *out, size_t size, off_t offset,
                   struct fuse_file_info *info)
{
    const int fd = openat(tree, below(path), O_RDONLY);
    ssize_t n_bytes;

    if (fd < 0)
        return -errno;
    n_bytes = pread(fd, out, size, offset);
    close(fd);
    return (int)n_bytes;
}

/* Return the "offset" in the info beside `raw`. */
static uint64_t offset_of(const char *path)
{
    char info[4096], text[4096] = "";
    const char *member;
    int fd;

    snprintf(info, sizeof info, "%.*sinfo", (int)(strlen(below(path)) - strlen("raw")),
             below(path));
    fd = openat(tree, info, O_RDONLY);
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
        exit(1);
    close(fd);
    member = strstr(text, "\"offset\"");
    return member ? strtoull(strchr(member, ':') + 1, NULL, 10) : 0;
}

static int on_ioctl(const char *path, unsigned command, void *argument, struct fuse_file_info *info,
                    unsigned flags, void *data)
{
    struct gguf_source_location *location = data;
    struct stat status;

    (void)argument, (void)info, (void)flags;
    if (command != GGUF_GET_SOURCE_LOCATION || stat(victim, &status) != 0)
        return -ENOTTY;
    *location = (struct gguf_source_location){
        .offset = offset_of(path),
        .device = status.st_dev,
        .inode = status.st_ino,
        .size_bytes = (uint64_t)status.st_size,
        .modified_seconds = status.st_mtim.tv_sec,
        .modified_nanoseconds = status.st_mtim.tv_nsec,
    };
    strcpy(location->path, victim);
    return 0;
}

/* Mount as another user would have. Returns "/dev/fd/N", which libfuse serves. */
static char *mount_as(const char *owner, const char *mountpoint)
{
    const int device = open("/dev/fuse", O_RDWR);
    static char path[32];
    char options[128];

    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=%s,group_id=0,allow_other",
             device, owner);
    if (mount("liar", mountpoint, "fuse.ggufs", MS_NODEV | MS_NOSUID, options) != 0) {
        perror("liar: mount");
        exit(1);
    }
    snprintf(path, sizeof path, "/dev/fd/%d", device);
    return path;
}

int main(int argc, char **argv)
{
    static const struct fuse_operations operations = {
        .getattr = on_getattr,
        .readlink = on_readlink,
        .readdir = on_readdir,
        .read = on_read,
        .ioctl = on_ioctl,
    };
    char *arguments[] = {"liar", "-f", "-s", "-osubtype=ggufs", NULL, NULL};
    const bool is_other = argc == 5 && strtoul(argv[3], NULL, 10) != geteuid();

    if (argc != 5 || (tree = open(argv[1], O_RDONLY | O_DIRECTORY)) < 0) {
        fputs("usage: liar TREE VICTIM OWNER MOUNTPOINT\n", stderr);
        return 2;
    }
    victim = argv[2];
    arguments[4] = is_other ? mount_as(argv[3], argv[4]) : argv[4];
    return fuse_main(5, arguments, &operations, NULL);
}
