#include "contrib/runner/tree/tree_files.h"

#include "gguf/support/strings.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { MAX_DEPTH = 64 }; /* of JSON */

/* openat2() fails with EAGAIN if a directory was renamed meanwhile. */
#define MAX_TRIES 16

int run_open_below(int tree_fd, const char *path, int flags)
{
    const struct open_how how = {
        .flags = (unsigned)(flags | O_CLOEXEC),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    long fd = -1;

    errno = EAGAIN;
    for (int i = 0; i < MAX_TRIES && fd < 0 && errno == EAGAIN; i++)
        fd = syscall(SYS_openat2, tree_fd, path, &how, sizeof how);
    return fd < 0 ? -errno : (int)fd;
}

const char *run_open_below_error(int code)
{
    if (code == -ENOSYS || code == -EPERM)
        return "openat2(2) is refused: it needs Linux 5.6 and, in a container, a filter of system "
               "calls that permits it";
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

ssize_t run_read_at(int fd, void *out, size_t n_bytes, uint64_t offset)
{
    size_t done = 0;
    ssize_t n;

    while (done < n_bytes &&
           (n = pread(fd, (char *)out + done, n_bytes - done, (off_t)(offset + done))) != 0)
        if (n > 0)
            done += (size_t)n;
        else if (errno != EINTR)
            return -errno;
    return (ssize_t)done;
}

/* `before`: the place of the text in the file. */
static int parse(const char *path, uint64_t before, struct run_json *json,
                 struct run_failure *failure)
{
    char *text = json->bytes.bytes;
    const size_t n_bytes = json->bytes.length;
    const char *rule;
    size_t offset;

    json->values = calloc(gguf_json_room(text, n_bytes), sizeof *json->values);
    if (!json->values)
        return run_fail_memory(failure);
    rule = gguf_json_parse(text, n_bytes, MAX_DEPTH, json->values, &offset);
    return rule ? run_fail(failure, -EINVAL, "%s: byte %llu: not valid JSON: %s", path,
                           (unsigned long long)before + offset, rule)
                : 0;
}

int run_json_read_part(int fd, const char *path, uint64_t offset, size_t n_bytes,
                       struct run_json *json, struct run_failure *failure)
{
    struct gguf_buffer *bytes = &json->bytes;
    ssize_t n;
    int code;

    *json = (struct run_json){0};
    if (gguf_reserve(&bytes->bytes, &bytes->capacity, n_bytes + 1, 1) < 0)
        return run_fail_memory(failure);
    n = run_read_at(fd, bytes->bytes, n_bytes, offset);
    bytes->bytes[n_bytes] = '\0';
    bytes->length = n_bytes;
    code = n == (ssize_t)n_bytes
               ? parse(path, offset, json, failure)
               : run_fail(failure, n < 0 ? (int)n : -EIO, "%s: byte %llu: %s", path,
                          (unsigned long long)offset, n < 0 ? strerror((int)-n) : "cut meanwhile");
    if (code < 0)
        run_json_free(json);
    return code;
}

int run_json_read(int tree_fd, const char *path, uint64_t limit_bytes, struct run_json *json,
                  struct run_failure *failure)
{
    const int fd = run_open_below(tree_fd, path, O_RDONLY | O_NONBLOCK);
    struct stat status;
    int code;

    *json = (struct run_json){0};
    if (fd < 0)
        return run_fail(failure, fd, "%s: %s", path, run_open_below_error(fd));
    if (fstat(fd, &status) < 0)
        code = run_fail(failure, -errno, "%s: %s", path, strerror(errno));
    else if ((uint64_t)status.st_size > limit_bytes)
        code = run_fail(failure, -EFBIG, "%s: larger than %llu bytes", path,
                        (unsigned long long)limit_bytes);
    else
        code = run_json_read_part(fd, path, 0, (size_t)status.st_size, json, failure);
    close(fd);
    return code;
}

void run_json_free(struct run_json *json)
{
    free(json->values);
    gguf_buffer_free(&json->bytes);
    *json = (struct run_json){0};
}
