#include "contrib/runner/tree/metadata.h"

#include "gguf/support/strings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Longer keys of unknown architectures are truncated; no file name is that long. */
#define KEY_BYTES 512

/* "metadata/", the escaped key, ".json". */
#define PATH_BYTES (3 * KEY_BYTES + 16)

/* Larger than any vocabulary. The reader limits strings, and the callers limit arrays. */
#define FILE_LIMIT_BYTES ((uint64_t)1 << 30)

/* Larger than any other value. These stay in memory. */
#define VALUE_LIMIT_BYTES ((uint64_t)16 << 20)

/* A key that was looked up. */
struct value {
    char *key;
    struct run_json json; /* all zeros: the key is missing */
};

/* The cache, which lookups change. */
struct cache {
    void *values; /* a tree of tsearch(3) */
    int code;     /* the first failure */
    struct run_failure failure;
};

struct run_metadata {
    int tree_fd;
    char *architecture;
    struct cache *cache;
};

/* ---- files ---- */

static const char *full_key(const struct run_metadata *metadata, const char *key,
                            char buffer[KEY_BYTES])
{
    snprintf(buffer, KEY_BYTES, "%s%s", key[0] == '.' ? metadata->architecture : "", key);
    return buffer;
}

/* Write the path of a key's file; its name is escaped as in ggufs(5). */
static void write_path(const char *key, char path[PATH_BYTES])
{
    int used = snprintf(path, PATH_BYTES, "metadata/");

    for (; *key != '\0'; key++) {
        const unsigned char c = (unsigned char)*key;
        const bool is_unsafe = c < 0x20 || c == 0x7f || c == '/' || c == '%';

        used += snprintf(path + used, PATH_BYTES - (size_t)used, is_unsafe ? "%%%02X" : "%c", c);
    }
    snprintf(path + used, PATH_BYTES - (size_t)used, ".json");
}

/* Read the key's file. Returns 0, also if the key is missing; then *json is all zeros. */
static int read_key(const struct run_metadata *metadata, const char *key, uint64_t limit_bytes,
                    struct run_json *json, struct run_failure *failure)
{
    char path[PATH_BYTES];
    int code;

    write_path(key, path);
    code = run_json_read(metadata->tree_fd, path, limit_bytes, json, failure);
    return code == -ENOENT || code == -ENAMETOOLONG ? 0 : code;
}

static int remember(const struct run_metadata *metadata, int code,
                    const struct run_failure *failure)
{
    if (code < 0 && metadata->cache->code == 0) {
        metadata->cache->code = code;
        metadata->cache->failure = *failure;
    }
    return code;
}

/* ---- values ---- */

static int compare_keys(const void *a, const void *b)
{
    return strcmp(((const struct value *)a)->key, ((const struct value *)b)->key);
}

static void free_value(void *node)
{
    struct value *value = node;

    if (value) {
        free(value->key);
        run_json_free(&value->json);
    }
    free(value);
}

static const struct value *find_cached(const struct run_metadata *metadata, const char *key)
{
    const struct value wanted = {.key = (char *)(uintptr_t)key};
    struct value **node = (struct value **)tfind(&wanted, &metadata->cache->values, compare_keys);

    return node ? *node : NULL;
}

/* Return the value of a key. NULL if it is missing, or after setting the status. */
static const struct gguf_json *find(const struct run_metadata *metadata, const char *key)
{
    char buffer[KEY_BYTES];
    const struct value *cached = find_cached(metadata, full_key(metadata, key, buffer));
    struct run_failure failure;
    struct value *value;
    int code;

    if (cached)
        return cached->json.values;
    value = calloc(1, sizeof *value);
    code = value && (value->key = strdup(buffer))
               ? read_key(metadata, buffer, VALUE_LIMIT_BYTES, &value->json, &failure)
               : run_fail_memory(&failure);
    if (code == 0 && !tsearch(value, &metadata->cache->values, compare_keys))
        code = run_fail_memory(&failure);
    if (remember(metadata, code, &failure) == 0)
        return value->json.values;
    free_value(value);
    return NULL;
}

/* ---- all of it ---- */

int run_metadata_open(int tree_fd, struct run_metadata **out, struct run_failure *failure)
{
    const int fd = run_open_below(tree_fd, "metadata", O_RDONLY | O_DIRECTORY);
    struct run_metadata *metadata = calloc(1, sizeof *metadata);
    const char *architecture;
    int code;

    *out = NULL;
    if (fd < 0) {
        free(metadata);
        return run_fail(failure, fd, "metadata: %s", run_open_below_error(fd));
    }
    close(fd);
    if (metadata)
        metadata->cache = calloc(1, sizeof *metadata->cache);
    if (!metadata || !metadata->cache) {
        free(metadata);
        return run_fail_memory(failure);
    }
    metadata->tree_fd = tree_fd;
    architecture = run_metadata_string(metadata, "general.architecture");
    metadata->architecture = strdup(architecture ? architecture : "");
    code =
        metadata->architecture ? run_metadata_status(metadata, failure) : run_fail_memory(failure);
    if (code < 0)
        run_metadata_close(metadata);
    else
        *out = metadata;
    return code;
}

void run_metadata_close(struct run_metadata *metadata)
{
    if (!metadata)
        return;
    tdestroy(metadata->cache->values, free_value);
    free(metadata->cache);
    free(metadata->architecture);
    free(metadata);
}

int run_metadata_status(const struct run_metadata *metadata, struct run_failure *failure)
{
    if (metadata->cache->code < 0)
        *failure = metadata->cache->failure;
    return metadata->cache->code;
}

const char *run_metadata_architecture(const struct run_metadata *metadata)
{
    return metadata->architecture;
}

bool run_metadata_has(const struct run_metadata *metadata, const char *key)
{
    char buffer[KEY_BYTES], path[PATH_BYTES];
    const struct value *cached = find_cached(metadata, full_key(metadata, key, buffer));
    struct run_failure failure;
    int fd;

    if (cached)
        return cached->json.values;
    write_path(buffer, path);
    fd = run_open_below(metadata->tree_fd, path, O_RDONLY | O_NONBLOCK);
    if (fd >= 0)
        close(fd);
    else if (fd != -ENOENT && fd != -ENAMETOOLONG)
        remember(metadata, run_fail(&failure, fd, "%s: %s", path, run_open_below_error(fd)),
                 &failure);
    return fd >= 0;
}

bool run_metadata_has_group(const struct run_metadata *metadata, const char *prefix)
{
    const int fd = run_open_below(metadata->tree_fd, "metadata", O_RDONLY | O_DIRECTORY);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    struct run_failure failure;
    bool is_found = false;

    if (!directory) {
        const int code = fd < 0 ? fd : -errno;

        if (fd >= 0)
            close(fd);
        remember(metadata, run_fail(&failure, code, "metadata: %s", run_open_below_error(code)),
                 &failure);
        return false;
    }
    while (!is_found && (entry = readdir(directory)) != NULL)
        is_found = gguf_text_starts_with(entry->d_name, prefix);
    closedir(directory);
    return is_found;
}

const char *run_metadata_string(const struct run_metadata *metadata, const char *key)
{
    const struct gguf_json *value = find(metadata, key);

    return value && value->kind == GGUF_JSON_STRING ? value->text.data : NULL;
}

static bool is_bool(const struct gguf_json *value)
{
    return value->kind == GGUF_JSON_TRUE || value->kind == GGUF_JSON_FALSE;
}

int run_metadata_bool(const struct run_metadata *metadata, const char *key, bool *is_true,
                      struct run_failure *failure)
{
    const struct gguf_json *value = find(metadata, key);
    char buffer[KEY_BYTES];

    if (!value)
        return run_metadata_status(metadata, failure);
    if (!is_bool(value))
        return run_fail(failure, -EINVAL, "metadata: %s: neither true nor false",
                        full_key(metadata, key, buffer));
    *is_true = value->kind == GGUF_JSON_TRUE;
    return 0;
}

bool run_metadata_is_true(const struct run_metadata *metadata, const char *key, bool otherwise)
{
    const struct gguf_json *value = find(metadata, key);

    return value ? value->kind == GGUF_JSON_TRUE : otherwise;
}

bool run_metadata_is_array(const struct run_metadata *metadata, const char *key, size_t *n)
{
    const struct gguf_json *value = find(metadata, key);

    *n = 0;
    if (!value || value->kind != GGUF_JSON_ARRAY)
        return false;
    for (const struct gguf_json *item = value->child; item; item = item->next)
        ++*n;
    return true;
}

int run_metadata_each(const struct run_metadata *metadata, const char *key, run_take_element *take,
                      void *context, struct run_failure *failure)
{
    char buffer[KEY_BYTES];
    struct run_json json;
    uint32_t index = 0;
    int code;

    key = full_key(metadata, key, buffer);
    code = read_key(metadata, key, FILE_LIMIT_BYTES, &json, failure);
    if (code < 0 || !json.values)
        return code;
    code = json.values->kind == GGUF_JSON_ARRAY
               ? 1
               : run_fail(failure, -EINVAL, "metadata: %s: not an array", key);
    for (const struct gguf_json *item = json.values->child; code > 0 && item; item = item->next)
        code = take(context, index++, item, failure);
    run_json_free(&json);
    return code < 0 ? code : 0;
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
    const struct gguf_json *value = find(metadata, key);
    char buffer[KEY_BYTES];
    double found;
    size_t n;

    if (!value)
        return run_metadata_status(metadata, failure);
    key = full_key(metadata, key, buffer);
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
