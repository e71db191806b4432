#include "contrib/runner/tree/model_files.h"

#include "gguf/support/file_status.h"
#include "gguf/support/arrays.h"
#include "gguf/support/source_location.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Each file takes two descriptors, and processes may often have 1024. */
#define MAX_FILES 256

/* Bytes at each end of a tensor that must be equal in the tree and in the model file. */
#define COMPARED_BYTES 4096

struct run_model_file {
    const char *name;    /* of the caller */
    const uint8_t *data; /* NULL: not used */
    int fd;
    int tree_fd; /* a file of the tree whose bytes come from this file; reads are not cached */
    struct gguf_file_status status;
};

static struct run_model_file *find(const struct run_model_files *files, const char *name)
{
    for (size_t i = 0; i < files->n; i++)
        if (strcmp(files->list[i].name, name) == 0)
            return &files->list[i];
    return NULL;
}

static bool is_located(const struct gguf_source_location *location,
                       const struct gguf_file_status *status)
{
    return location->device == status->device && location->inode == status->inode &&
           location->size_bytes == status->size_bytes &&
           location->modified_seconds == status->modified.tv_sec &&
           location->modified_nanoseconds == status->modified.tv_nsec;
}

/*
 * Open the file that the mount was made from. Opening a device could have effects, so make sure
 * that it is a regular file before.
 */
static int open_located(const struct gguf_source_location *location,
                        struct gguf_file_status *status)
{
    struct stat properties;
    int fd;

    if (stat(location->path, &properties) != 0 || !S_ISREG(properties.st_mode))
        return -1;
    fd = open(location->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd >= 0 && (gguf_get_file_status(fd, status) < 0 || !is_located(location, status))) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Return a second descriptor of an open file, whose reads do not come from the cache, or -1. */
static int open_uncached(int raw_fd)
{
    const int fd = fcntl(raw_fd, F_DUPFD_CLOEXEC, 0);

    if (fd >= 0 && fcntl(fd, F_SETFL, O_DIRECT) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Return true if a range of a tree's file has the same bytes in the model file. */
static bool is_same(int raw_fd, uint64_t at, const struct run_model_file *file, uint64_t offset,
                    size_t n_bytes)
{
    char in_tree[COMPARED_BYTES], in_file[COMPARED_BYTES];

    return pread(raw_fd, in_tree, n_bytes, (off_t)at) == (ssize_t)n_bytes &&
           pread(file->fd, in_file, n_bytes, (off_t)(offset + at)) == (ssize_t)n_bytes &&
           memcmp(in_tree, in_file, n_bytes) == 0;
}

/*
 * Return true if both ends of a tree's file are in the model file. If a server was taken over and
 * names another file, it would have to know that file's content.
 */
static bool is_content_same(int raw_fd, const struct run_model_file *file, uint64_t offset)
{
    struct stat raw;
    uint64_t size_bytes;
    size_t n_bytes;

    if (fstat(raw_fd, &raw) != 0 || raw.st_size <= 0)
        return false;
    size_bytes = (uint64_t)raw.st_size;
    n_bytes = size_bytes < COMPARED_BYTES ? (size_t)size_bytes : COMPARED_BYTES;
    return offset <= file->status.size_bytes && size_bytes <= file->status.size_bytes - offset &&
           is_same(raw_fd, 0, file, offset, n_bytes) &&
           is_same(raw_fd, size_bytes - n_bytes, file, offset, n_bytes);
}

void run_model_files_trust(struct run_model_files *files, int tree_fd)
{
    struct stat status;

    files->is_trusted = fstat(tree_fd, &status) == 0;
    files->device = files->is_trusted ? status.st_dev : 0;
}

static void map_file(struct run_model_file *file, const struct run_place *place, int raw_fd)
{
    struct gguf_source_location location;
    void *data;

    if (ioctl(raw_fd, GGUF_GET_SOURCE_LOCATION, &location) != 0 || location.offset != place->offset)
        return;
    location.path[sizeof location.path - 1] = '\0';
    file->fd = open_located(&location, &file->status);
    if (file->fd < 0 || !is_content_same(raw_fd, file, place->offset))
        return;
    file->tree_fd = open_uncached(raw_fd);
    if (file->tree_fd < 0)
        return;
    data = mmap(NULL, file->status.size_bytes, PROT_READ, MAP_SHARED, file->fd, 0);
    if (data == MAP_FAILED)
        return;
    /* The first to read a page decides how large it is, so this comes before anything is read. */
    madvise(data, file->status.size_bytes, MADV_HUGEPAGE);
    file->data = data;
}

void run_model_files_open(struct run_model_files *files, const struct run_place *place, int raw_fd)
{
    struct run_model_file *file;
    struct stat raw;

    if (!files->is_trusted || place->file[0] == '\0' || files->n == MAX_FILES ||
        find(files, place->file) || fstat(raw_fd, &raw) != 0 || raw.st_dev != files->device ||
        gguf_reserve(&files->list, &files->room, files->n + 1, sizeof *file) < 0)
        return;
    file = &files->list[files->n++];
    *file = (struct run_model_file){.name = place->file, .fd = -1, .tree_fd = -1};
    map_file(file, place, raw_fd);
    if (!file->data && file->fd >= 0)
        close(file->fd);
    if (!file->data && file->tree_fd >= 0)
        close(file->tree_fd);
}

const uint8_t *run_model_files_bytes(const struct run_model_files *files,
                                     const struct run_place *place, uint64_t n_bytes)
{
    const struct run_model_file *file = find(files, place->file);

    if (!file || !file->data || n_bytes > file->status.size_bytes ||
        place->offset > file->status.size_bytes - n_bytes)
        return NULL;
    return file->data + place->offset;
}

/* A read of the tree makes the daemon check the file: it compares the header if the times differ.
 */
static int check_file(struct run_model_file *file)
{
    struct gguf_file_status now;
    char byte;

    if (!file->data)
        return 0;
    if (gguf_get_file_status(file->fd, &now) < 0)
        return -EIO;
    if (gguf_is_same_time(now.modified, file->status.modified) &&
        gguf_is_same_time(now.status_changed, file->status.status_changed))
        return 0;
    if (now.size_bytes != file->status.size_bytes || pread(file->tree_fd, &byte, 1, 0) != 1)
        return -EIO;
    file->status = now;
    return 0;
}

int run_model_files_check(struct run_model_files *files, struct run_failure *failure)
{
    for (size_t i = 0; i < files->n; i++)
        if (check_file(&files->list[i]) < 0)
            return run_fail(failure, -EIO, "%s: the file was changed meanwhile",
                            files->list[i].name);
    return 0;
}

void run_model_files_close(struct run_model_files *files)
{
    for (size_t i = 0; i < files->n; i++) {
        struct run_model_file *file = &files->list[i];

        if (!file->data)
            continue;
        munmap((void *)(uintptr_t)file->data, file->status.size_bytes);
        close(file->fd);
        close(file->tree_fd);
    }
    free(files->list);
    *files = (struct run_model_files){0};
}
