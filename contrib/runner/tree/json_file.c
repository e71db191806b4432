#include "contrib/runner/tree/json_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The value of the four hexadecimal digits after \u, or -1. */
static int code_unit(const char *at, const char *end)
{
    int value = 0;

    if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        char c = at[i];

        if (c >= '0' && c <= '9')
            value = value * 16 + (c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value * 16 + (c - 'a' + 10);
        else if (c >= 'A' && c <= 'F')
            value = value * 16 + (c - 'A' + 10);
        else
            return -1;
    }
    return value;
}

/* Turns escapes that cJSON can't keep into bytes; what is left is shorter. */
static size_t replace_escapes(char *text, size_t length)
{
    const char *from = text, *end = text + length;
    char *to = text;

    while (from < end) {
        int unit;

        if (*from != '\\') {
            *to++ = *from++;
            continue;
        }
        unit = code_unit(from, end);
        if (unit == 0) {
            *to++ = (char)0xc0;
            *to++ = (char)0x80;
            from += 6;
        } else if (unit >= 0xdc80 && unit <= 0xdcff) {
            *to++ = (char)(unit - 0xdc00);
            from += 6;
        } else {
            /* The first half of a pair takes its second along; \\ its other half. */
            size_t n = unit >= 0xd800 && unit <= 0xdbff ? 12 : unit >= 0 ? 6 : 2;

            if (n > (size_t)(end - from))
                n = (size_t)(end - from);
            memmove(to, from, n);
            to += n;
            from += n;
        }
    }
    return (size_t)(to - text);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

int run_json_parse(char *text, size_t length, const char *name, cJSON **out,
                   struct run_failure *failure)
{
    const char *end = NULL;

    length = replace_escapes(text, length);
    errno = 0; /* cJSON does not tell why, malloc() does */
    *out = cJSON_ParseWithLengthOpts(text, length, &end, false);
    if (!*out && errno == ENOMEM)
        return run_fail_memory(failure);
    if (!*out)
        return run_fail(failure, -EINVAL, "%s: not valid JSON", name);
    while (end < text + length && is_space(*end))
        end++;
    if (end < text + length) {
        cJSON_Delete(*out);
        *out = NULL;
        return run_fail(failure, -EINVAL, "%s: something follows the JSON at its end", name);
    }
    if (!cJSON_IsObject(*out)) {
        cJSON_Delete(*out);
        *out = NULL;
        return run_fail(failure, -EINVAL, "%s: not a JSON object", name);
    }
    return 0;
}

static int read_whole(int fd, size_t limit_bytes, char **text, size_t *length)
{
    size_t capacity = 4096, used = 0;
    char *buffer = malloc(capacity);

    while (buffer) {
        ssize_t n = read(fd, buffer + used, capacity - used);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || used + (size_t)n > limit_bytes) {
            int code = n < 0 ? -errno : -EFBIG;

            free(buffer);
            return code;
        }
        if (n == 0) {
            *text = buffer;
            *length = used;
            return 0;
        }
        used += (size_t)n;
        if (used == capacity) {
            char *larger = realloc(buffer, capacity *= 2);

            if (!larger)
                free(buffer);
            buffer = larger;
        }
    }
    return -ENOMEM;
}

int run_json_read(int dir_fd, const char *path, size_t limit_bytes, cJSON **out,
                  struct run_failure *failure)
{
    int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    size_t length = 0;
    char *text = NULL;
    int code;

    *out = NULL;
    if (fd < 0)
        return run_fail(failure, -errno, "%s: %s", path, strerror(errno));
    code = read_whole(fd, limit_bytes, &text, &length);
    close(fd);
    if (code == -EFBIG)
        return run_fail(failure, code, "%s: larger than %zu bytes", path, limit_bytes);
    if (code < 0)
        return run_fail(failure, code, "%s: %s", path, strerror(-code));
    code = run_json_parse(text, length, path, out, failure);
    free(text);
    return code;
}
