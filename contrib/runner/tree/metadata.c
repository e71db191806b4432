#include "contrib/runner/tree/metadata.h"

#include "gguf/support/limits.h"
#include "gguf/support/strings.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME "metadata.json"

/* No key of a known architecture is longer. */
#define KEY_BYTES 512

/* Longer keys are left out. */
#define START_BYTES 4096

/* Larger than any vocabulary; and of a value that stays in memory. */
#define FILE_LIMIT_BYTES  ((uint64_t)1 << 30)
#define VALUE_LIMIT_BYTES ((uint64_t)16 << 20)

/* A key and its value. */
struct member {
    struct gguf_string name; /* owned, followed by a NUL */
    uint64_t offset;         /* of the value */
    size_t n_bytes;          /* the same */
    struct run_json json;    /* the value; empty until it is asked for */
    int code;                /* of reading the value */
};

struct run_metadata {
    int fd;                 /* -1 after run_metadata_finish() */
    struct member *members; /* by name */
    size_t n, room;
    const char *architecture;
};

static struct member *find(const struct run_metadata *metadata, const char *key)
{
    char full[KEY_BYTES];
    const char *prefix = key[0] == '.' ? metadata->architecture : "";
    const int n = snprintf(full, sizeof full, "%s%s", prefix, key);
    const struct gguf_string name = {full, (uint64_t)n};

    if (n >= KEY_BYTES || metadata->n == 0)
        return NULL;
    return bsearch(&name, metadata->members, metadata->n, sizeof *metadata->members,
                   gguf_string_order);
}

/* Find a member, and parse its value unless it was. *found: NULL if the key is missing. */
static int get(const struct run_metadata *metadata, const char *key, const struct member **found,
               struct run_failure *failure)
{
    struct member *member = find(metadata, key);

    *found = member;
    if (!member || member->json.values)
        return 0;
    member->code = member->n_bytes > VALUE_LIMIT_BYTES
                       ? run_fail(failure, -EFBIG, "metadata: %s: larger than %llu bytes",
                                  member->name.data, (unsigned long long)VALUE_LIMIT_BYTES)
                       : run_json_read_part(metadata->fd, NAME, member->offset, member->n_bytes,
                                            &member->json, failure);
    return member->code;
}

/* The value; NULL if the key is missing, and after a failure: see run_metadata_finish(). */
static const struct gguf_json *value_of(const struct run_metadata *metadata, const char *key)
{
    const struct member *member;
    struct run_failure ignored;

    return get(metadata, key, &member, &ignored) == 0 && member ? member->json.values : NULL;
}

/* ---- the lines ---- */

struct line {
    uint64_t offset, n_bytes;
    bool has_end;                  /* false: the file ends before */
    char start[START_BYTES], last; /* bytes */
};

static int refuse(const struct line *line, const char *expected, struct run_failure *failure)
{
    return run_fail(failure, -EINVAL, NAME ": byte %llu: expected %s; copy the tree again",
                    (unsigned long long)line->offset, expected);
}

static int add_member(struct run_metadata *metadata, struct line *line, struct run_failure *failure)
{
    const size_t n = line->n_bytes < START_BYTES ? line->n_bytes : START_BYTES;
    struct gguf_json key = {0};
    struct member member;
    const char *rule;
    size_t end = 1, at;

    while (end < n && line->start[end] != '"')
        end += line->start[end] == '\\' ? 2 : 1;
    if (n > 0 && line->start[0] == '"' && end + 3 >= n && n < line->n_bytes)
        return 0; /* nobody looks up a key of this length */
    if (end + 3 >= n || line->start[0] != '"' || strncmp(line->start + end, "\": ", 3) != 0)
        return refuse(line, "a line with a key and its value", failure);
    line->start[end + 1] = '\0';
    rule = gguf_json_parse(line->start, end + 1, 1, &key, &at);
    if (rule)
        return run_fail(failure, -EINVAL, NAME ": byte %llu: not valid JSON: %s",
                        (unsigned long long)line->offset + at, rule);
    if (metadata->n == GGUF_MAX_KEYS)
        return run_fail(failure, -EFBIG, NAME ": more than %d keys", GGUF_MAX_KEYS);
    member = (struct member){.name = key.text,
                             .offset = line->offset + end + 3,
                             .n_bytes = line->n_bytes - end - 3 - (line->last == ',')};
    if (gguf_reserve(&metadata->members, &metadata->room, metadata->n + 1, sizeof member) < 0 ||
        gguf_string_copy(&member.name) < 0)
        return run_fail_memory(failure);
    metadata->members[metadata->n++] = member;
    return 0;
}

/* Go on to the next line; it is empty, without an end, at the end of the file. */
static int next_line(int fd, struct line *line, struct run_failure *failure)
{
    char piece[65536], *from = line->start;
    size_t room = START_BYTES;
    ssize_t n = 1;

    line->offset += line->n_bytes + line->has_end;
    line->has_end = false;
    for (line->n_bytes = 0; !line->has_end && n > 0; from = piece, room = sizeof piece) {
        const char *end;

        if (line->offset + line->n_bytes > FILE_LIMIT_BYTES)
            return run_fail(failure, -EFBIG, NAME ": larger than %llu bytes",
                            (unsigned long long)FILE_LIMIT_BYTES);
        n = run_read_at(fd, from, room, line->offset + line->n_bytes);
        if (n <= 0)
            break;
        end = memchr(from, '\n', (size_t)n);
        line->has_end = end != NULL;
        n = end ? end - from : n;
        line->last = n > 0 ? from[n - 1] : line->last;
        line->n_bytes += (size_t)n;
    }
    return n < 0 ? run_fail(failure, (int)n, NAME ": %s", strerror((int)-n)) : 0;
}

/* The lines: {, a line for each key, with a comma at its end except for the last, and }. */
static int read_lines(struct run_metadata *metadata, struct run_failure *failure)
{
    struct line line = {0};
    int code = next_line(metadata->fd, &line, failure);

    if (code == 0 && (line.n_bytes != 1 || line.last != '{'))
        return refuse(&line, "a line {", failure);
    for (bool is_first = true, has_comma = true; code == 0; is_first = false) {
        code = next_line(metadata->fd, &line, failure);
        if (code == 0 && (is_first || !has_comma) && line.n_bytes == 1 && line.last == '}')
            break;
        if (code == 0 && !has_comma)
            return refuse(&line, "a line }, or a comma at the end of the line before", failure);
        if (code == 0)
            code = add_member(metadata, &line, failure);
        has_comma = line.last == ',';
    }
    if (code == 0)
        code = next_line(metadata->fd, &line, failure);
    if (code == 0 && (line.n_bytes > 0 || line.has_end))
        return refuse(&line, "the end of the file", failure);
    return code;
}

static int sort(struct run_metadata *metadata, struct run_failure *failure)
{
    const struct member *members = metadata->members;

    if (metadata->n > 0)
        qsort(metadata->members, metadata->n, sizeof *members, gguf_string_order);
    for (size_t i = 1; i < metadata->n; i++)
        if (gguf_string_order(&members[i - 1], &members[i]) == 0)
            return run_fail(failure, -EINVAL,
                            NAME ": the key %s has two values; copy the tree again",
                            gguf_quote(members[i].name).text);
    return 0;
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
    if (code == 0)
        code = sort(metadata, failure);
    if (code < 0) {
        run_metadata_close(metadata);
        return code;
    }
    architecture = run_metadata_string(metadata, "general.architecture");
    metadata->architecture = architecture ? architecture : "";
    *out = metadata;
    return 0;
}

int run_metadata_finish(struct run_metadata *metadata, int code, struct run_failure *failure)
{
    const struct member *member;

    for (size_t i = 0; i < metadata->n; i++)
        if (metadata->members[i].code < 0) {
            const int first = metadata->members[i].code;

            /* The same failure again, for its reason; memory may be there now. */
            code = get(metadata, metadata->members[i].name.data, &member, failure);
            return code < 0           ? code
                   : first == -ENOMEM ? run_fail_memory(failure)
                                      : run_fail(failure, first, NAME ": %s", strerror(-first));
        }
    if (code == 0) {
        close(metadata->fd);
        metadata->fd = -1;
    }
    return code;
}

void run_metadata_close(struct run_metadata *metadata)
{
    if (!metadata)
        return;
    for (size_t i = 0; i < metadata->n; i++) {
        run_json_free(&metadata->members[i].json);
        free((void *)metadata->members[i].name.data);
    }
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

    while (i < metadata->n && !gguf_string_starts_with(metadata->members[i].name, prefix))
        i++;
    return i < metadata->n;
}

const char *run_metadata_string(const struct run_metadata *metadata, const char *key)
{
    const struct gguf_json *value = value_of(metadata, key);

    return value && value->kind == GGUF_JSON_STRING ? value->text.data : NULL;
}

static bool is_bool(const struct gguf_json *value)
{
    return value->kind == GGUF_JSON_TRUE || value->kind == GGUF_JSON_FALSE;
}

int run_metadata_bool(const struct run_metadata *metadata, const char *key, bool *is_true,
                      struct run_failure *failure)
{
    const struct member *member;
    const int code = get(metadata, key, &member, failure);

    if (code < 0 || !member)
        return code;
    if (!is_bool(member->json.values))
        return run_fail(failure, -EINVAL, "metadata: %s: neither true nor false",
                        member->name.data);
    *is_true = member->json.values->kind == GGUF_JSON_TRUE;
    return 0;
}

bool run_metadata_is_true(const struct run_metadata *metadata, const char *key, bool otherwise)
{
    const struct gguf_json *value = value_of(metadata, key);

    return value ? value->kind == GGUF_JSON_TRUE : otherwise;
}

/* Return element `index` of an array, NULL if it is too short. */
static const struct gguf_json *element(const struct gguf_json *array, size_t index, size_t *n)
{
    const struct gguf_json *item = array->child;

    for (*n = 0; item && *n < index; item = item->next)
        ++*n;
    return item;
}

bool run_metadata_is_array(const struct run_metadata *metadata, const char *key, size_t *n)
{
    const struct gguf_json *value = value_of(metadata, key);

    *n = 0;
    if (!value || value->kind != GGUF_JSON_ARRAY)
        return false;
    element(value, SIZE_MAX, n);
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
    code = run_json_read_part(metadata->fd, NAME, member->offset, member->n_bytes, json, failure);
    if (code == 0 && json->values->kind != GGUF_JSON_ARRAY) {
        run_json_free(json);
        code = run_fail(failure, -EINVAL, "metadata: %s: not an array", member->name.data);
    }
    *array = json->values; /* NULL after a failure */
    return code;
}

/* ---- numbers ---- */

int run_metadata_number(const struct run_metadata *metadata, const char *key, size_t index,
                        const struct run_range *range, double *number, struct run_failure *failure)
{
    const struct member *member;
    const int code = get(metadata, key, &member, failure);
    const struct gguf_json *value;
    double found;
    size_t n;

    if (code < 0 || !member)
        return code;
    key = member->name.data;
    value = member->json.values;
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
