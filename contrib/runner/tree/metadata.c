#include "contrib/runner/tree/metadata.h"

#include "gguf/support/strings.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME "metadata.json"

/* Longer keys of unknown architectures are truncated. */
#define KEY_BYTES 512

/* Arrays in longer lines are read when they are needed, and strings in longer ones never. */
#define SHORT_BYTES 4096
#define LIMIT_BYTES ((uint64_t)16 << 20)

/* A line of the file. */
struct member {
    struct run_json json; /* an object with this member alone */
    uint64_t offset, n_bytes;
    bool is_long; /* in `json`, the array is empty */
};

struct run_metadata {
    int fd;
    struct member *members;
    size_t n, room;
    const char *architecture;
};

static const struct gguf_json *value_of(const struct member *member)
{
    return member ? member->json.values->child : NULL;
}

static struct member *find(const struct run_metadata *metadata, const char *key)
{
    char full[KEY_BYTES];
    size_t i = 0;

    snprintf(full, sizeof full, "%s%s", key[0] == '.' ? metadata->architecture : "", key);
    while (i < metadata->n && strcmp(value_of(&metadata->members[i])->key.data, full) != 0)
        i++;
    return i < metadata->n ? &metadata->members[i] : NULL;
}

static int add_line(struct run_metadata *metadata, uint64_t offset, uint64_t n_bytes,
                    struct run_failure *failure)
{
    struct member member = {.offset = offset, .n_bytes = n_bytes};
    char start[SHORT_BYTES];
    const ssize_t n = pread(metadata->fd, start, sizeof start, (off_t)offset);
    ssize_t end = 1; /* of the key */
    int code;

    if (n < 0)
        return run_fail(failure, -errno, NAME ": %s", strerror(errno));
    if (n_bytes == 0 || (n > 0 && n_bytes <= 2 && (start[0] == '{' || start[0] == '}')))
        return 0;
    while (end < n && start[end] != '"')
        end += start[end] == '\\' ? 2 : 1;
    if (n < 1 || start[0] != '"' || end + 3 >= n || strncmp(start + end, "\": ", 3) != 0)
        return run_fail(failure, -EINVAL, NAME ": byte %llu: not a line with a key and its value",
                        (unsigned long long)offset);
    member.is_long = n_bytes > SHORT_BYTES && start[end + 3] == '[';
    if (n_bytes > LIMIT_BYTES && !member.is_long)
        return 0;
    code =
        run_json_read_member(metadata->fd, NAME, offset, member.is_long ? (size_t)end + 3 : n_bytes,
                             member.is_long ? "[]" : "", &member.json, failure);
    if (code < 0)
        return code;
    if (gguf_reserve(&metadata->members, &metadata->room, metadata->n + 1, sizeof member) < 0) {
        run_json_free(&member.json);
        return run_fail_memory(failure);
    }
    metadata->members[metadata->n++] = member;
    return 0;
}

/* Find the lines. */
static int read_lines(struct run_metadata *metadata, struct run_failure *failure)
{
    char piece[65536];
    uint64_t at = 0, start = 0;
    ssize_t n;
    int code = 0;

    while (code == 0 && (n = pread(metadata->fd, piece, sizeof piece, (off_t)at)) > 0) {
        const char *line = piece, *end;

        while (code == 0 && (end = memchr(line, '\n', (size_t)(piece + n - line)))) {
            line = end + 1;
            code = add_line(metadata, start, at + (uint64_t)(end - piece) - start, failure);
            start = at + (uint64_t)(line - piece);
        }
        at += (uint64_t)n;
    }
    if (code == 0 && n < 0)
        return run_fail(failure, -errno, NAME ": %s", strerror(errno));
    return code == 0 && at > start ? add_line(metadata, start, at - start, failure) : code;
}

int run_metadata_open(int tree_fd, struct run_metadata **out, struct run_failure *failure)
{
    struct run_metadata *metadata = calloc(1, sizeof *metadata);
    const char *architecture;
    int code;

    *out = NULL;
    if (!metadata)
        return run_fail_memory(failure);
    metadata->fd = code = run_open_below(tree_fd, NAME, O_RDONLY | O_NONBLOCK);
    code = code < 0 ? run_fail(failure, code, NAME ": %s", run_open_below_error(code))
                    : read_lines(metadata, failure);
    if (code < 0) {
        run_metadata_close(metadata);
        return code;
    }
    architecture = run_metadata_string(metadata, "general.architecture");
    metadata->architecture = architecture ? architecture : "";
    *out = metadata;
    return 0;
}

void run_metadata_close(struct run_metadata *metadata)
{
    if (!metadata)
        return;
    for (size_t i = 0; i < metadata->n; i++)
        run_json_free(&metadata->members[i].json);
    if (metadata->fd >= 0)
        close(metadata->fd);
    free(metadata->members);
    free(metadata);
}

const char *run_metadata_architecture(const struct run_metadata *metadata)
{
    return metadata->architecture;
}

bool run_metadata_has(const struct run_metadata *metadata, const char *key)
{
    return find(metadata, key) != NULL;
}

bool run_metadata_has_group(const struct run_metadata *metadata, const char *prefix)
{
    size_t i = 0;

    while (i < metadata->n &&
           !gguf_text_starts_with(value_of(&metadata->members[i])->key.data, prefix))
        i++;
    return i < metadata->n;
}

const char *run_metadata_string(const struct run_metadata *metadata, const char *key)
{
    const struct gguf_json *value = value_of(find(metadata, key));

    return value && value->kind == GGUF_JSON_STRING ? value->text.data : NULL;
}

static bool is_bool(const struct gguf_json *value)
{
    return value->kind == GGUF_JSON_TRUE || value->kind == GGUF_JSON_FALSE;
}

int run_metadata_bool(const struct run_metadata *metadata, const char *key, bool *is_true,
                      struct run_failure *failure)
{
    const struct gguf_json *value = value_of(find(metadata, key));

    if (!value)
        return 0;
    if (!is_bool(value))
        return run_fail(failure, -EINVAL, "metadata: %s: neither true nor false", value->key.data);
    *is_true = value->kind == GGUF_JSON_TRUE;
    return 0;
}

bool run_metadata_is_true(const struct run_metadata *metadata, const char *key, bool otherwise)
{
    const struct gguf_json *value = value_of(find(metadata, key));

    return value ? value->kind == GGUF_JSON_TRUE : otherwise;
}

/* Read a value that was left out so far. */
static int read_long(const struct run_metadata *metadata, struct member *member,
                     struct run_failure *failure)
{
    struct run_json json;
    int code;

    if (!member || !member->is_long)
        return 0;
    if (member->n_bytes > LIMIT_BYTES)
        return run_fail(failure, -EFBIG, "metadata: %s: larger than %llu bytes",
                        value_of(member)->key.data, (unsigned long long)LIMIT_BYTES);
    code = run_json_read_member(metadata->fd, NAME, member->offset, member->n_bytes, "", &json,
                                failure);
    if (code < 0)
        return code;
    run_json_free(&member->json);
    member->json = json;
    member->is_long = false;
    return 0;
}

bool run_metadata_is_array(const struct run_metadata *metadata, const char *key, size_t *n)
{
    struct member *member = find(metadata, key);
    struct run_failure ignored; /* run_metadata_number() fails, too */
    const struct gguf_json *value;

    *n = 0;
    read_long(metadata, member, &ignored);
    value = value_of(member);
    if (!value || value->kind != GGUF_JSON_ARRAY)
        return false;
    for (const struct gguf_json *item = value->child; item; item = item->next)
        ++*n;
    return true;
}

int run_metadata_array(const struct run_metadata *metadata, const char *key, struct run_json *json,
                       const struct gguf_json **array, struct run_failure *failure)
{
    const struct member *member = find(metadata, key);
    int code;

    *array = NULL;
    *json = (struct run_json){0};
    if (!member)
        return 0;
    if (value_of(member)->kind != GGUF_JSON_ARRAY)
        return run_fail(failure, -EINVAL, "metadata: %s: not an array", value_of(member)->key.data);
    code = run_json_read_member(metadata->fd, NAME, member->offset, member->n_bytes, "", json,
                                failure);
    if (code == 0)
        *array = json->values->child;
    return code;
}

/* ---- numbers ---- */

/* Return element `index` of an array, NULL if it is too short. */
static const struct gguf_json *element(const struct gguf_json *array, size_t index, size_t *n)
{
    const struct gguf_json *item = array->child;

    for (*n = 0; item && *n < index; item = item->next)
        ++*n;
    return item;
}

int run_metadata_number(const struct run_metadata *metadata, const char *key, size_t index,
                        const struct run_range *range, double *number, struct run_failure *failure)
{
    struct member *member = find(metadata, key);
    const int code = read_long(metadata, member, failure);
    const struct gguf_json *value = value_of(member);
    double found;
    size_t n;

    if (code < 0 || !value)
        return code;
    key = value->key.data;
    if (is_bool(value))
        return run_fail(failure, -EINVAL, "metadata: %s: a bool, not a number", key);
    if (value->kind == GGUF_JSON_ARRAY) {
        if (index == RUN_SCALAR)
            return run_fail(failure, -EINVAL, "metadata: %s: an array, not one number", key);
        value = element(value, index, &n);
        if (!value)
            return run_fail(failure, -EINVAL, "metadata: %s: %zu values, layer %zu has none", key,
                            n, index);
    }
    if (!is_bool(value) && (value->kind != GGUF_JSON_NUMBER || isnan(value->number)))
        return run_fail(failure, -EINVAL, "metadata: %s: not a number", key);
    found = is_bool(value) ? value->kind == GGUF_JSON_TRUE : value->number;
    if (range && (!(found >= range->least && found <= range->most) ||
                  (range->is_whole && found != floor(found))))
        return run_fail(failure, -EINVAL, "metadata: %s: %.17g, not %s from %.9g to %.10g", key,
                        found, range->is_whole ? "an integer" : "a number", range->least,
                        range->most);
    *number = found;
    return 0;
}
