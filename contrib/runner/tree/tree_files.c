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
    return code == -EXDEV    ? "a symbolic link leads out of the tree"
           : code == -ENOSYS ? "the system has no openat2(2), which is in Linux since 5.6"
                             : strerror(-code);
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

static int read_bytes(int fd, const char *path, uint64_t limit_bytes, struct gguf_buffer *bytes,
                      struct run_failure *failure)
{
    char piece[65536];
    ssize_t n;
    int code = gguf_buffer_add(bytes, "", 0);

    while (code == 0 && bytes->length <= limit_bytes && (n = read(fd, piece, sizeof piece)) != 0)
        if (n > 0)
            code = gguf_buffer_add(bytes, piece, (size_t)n);
        else if (errno != EINTR)
            return run_fail(failure, -errno, "%s: %s", path, strerror(errno));
    if (code == 0 && bytes->length > limit_bytes)
        return run_fail(failure, -EFBIG, "%s: larger than %llu bytes", path,
                        (unsigned long long)limit_bytes);
    return code < 0 ? run_fail_memory(failure) : 0;
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

int run_json_read(int tree_fd, const char *path, uint64_t limit_bytes, struct run_json *json,
                  struct run_failure *failure)
{
    const int fd = run_open_below(tree_fd, path, O_RDONLY | O_NONBLOCK);
    int code;

    *json = (struct run_json){0};
    if (fd < 0)
        return run_fail(failure, fd, "%s: %s", path, run_open_below_error(fd));
    code = read_bytes(fd, path, limit_bytes, &json->bytes, failure);
    close(fd);
    if (code == 0)
        code = parse(path, 0, json, failure);
    if (code < 0)
        run_json_free(json);
    return code;
}

int run_json_read_member(int fd, const char *path, uint64_t offset, size_t n_bytes,
                         const char *value, struct run_json *json, struct run_failure *failure)
{
    struct gguf_buffer *bytes = &json->bytes;
    int code;

    *json = (struct run_json){0};
    if (n_bytes > SIZE_MAX / 2 || gguf_reserve(&bytes->bytes, &bytes->capacity, n_bytes + 8, 1) < 0)
        return run_fail_memory(failure);
    bytes->bytes[0] = '{';
    if (pread(fd, bytes->bytes + 1, n_bytes, (off_t)offset) == (ssize_t)n_bytes) {
        bytes->length = 1 + n_bytes - (bytes->bytes[n_bytes] == ',');
        stpcpy(stpcpy(bytes->bytes + bytes->length, value), "}");
        bytes->length += strlen(value) + 1;
        code = parse(path, offset - 1, json, failure);
    } else {
        code = run_fail(failure, -EIO, "%s: cannot be read at byte %llu", path,
                        (unsigned long long)offset);
    }
    if (code == 0 && (!json->values->child || json->values->child->next))
        code = run_fail(failure, -EINVAL, "%s: byte %llu: not one key and its value", path,
                        (unsigned long long)offset);
    if (code < 0)
        run_json_free(json);
    return code;
}

void run_json_free(struct run_json *json)
{
    free(json->values);
    gguf_buffer_free(&json->bytes);
    *json = (struct run_json){0};
}
