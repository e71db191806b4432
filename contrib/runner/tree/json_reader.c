#include "contrib/runner/tree/json_reader.h"

#include "contrib/runner/tree/open_below.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_DEPTH = 64 };

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

static int parse(const char *path, struct run_json *json, struct run_failure *failure)
{
    char *text = json->bytes.bytes;
    const size_t n_bytes = json->bytes.length;
    const char *rule;
    size_t offset;

    json->values = calloc(gguf_json_room(text, n_bytes), sizeof *json->values);
    if (!json->values)
        return run_fail_memory(failure);
    rule = gguf_json_parse(text, n_bytes, MAX_DEPTH, json->values, &offset);
    return rule ? run_fail(failure, -EINVAL, "%s: byte %zu: not valid JSON: %s", path, offset, rule)
                : 0;
}

int run_json_read(int dir_fd, const char *path, uint64_t limit_bytes, struct run_json *json,
                  struct run_failure *failure)
{
    const int fd = run_open_below(dir_fd, path, O_RDONLY | O_NONBLOCK);
    int code;

    *json = (struct run_json){0};
    if (fd < 0)
        return run_fail(failure, fd, "%s: %s", path, run_open_below_error(fd));
    code = read_bytes(fd, path, limit_bytes, &json->bytes, failure);
    close(fd);
    if (code == 0)
        code = parse(path, json, failure);
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
