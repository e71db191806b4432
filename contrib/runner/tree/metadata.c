#include "contrib/runner/tree/metadata.h"

#include "contrib/runner/tree/open_below.h"
#include "gguf/support/arrays.h"
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

/* A key that was requested. */
struct value {
    char *key;
    bool is_there;
    enum gguf_json_kind kind;
    double number;
    char *text;
    double *numbers;
    size_t n_numbers;
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

/* Read the key's file. Returns 1, or 0 if the key is missing. */
static int read_key(const struct run_metadata *metadata, const char *key, struct run_json *json,
                    struct run_failure *failure)
{
    char path[PATH_BYTES];
    int code;

    write_path(key, path);
    code = run_json_read(metadata->tree_fd, path, FILE_LIMIT_BYTES, json, failure);
    return code == -ENOENT || code == -ENAMETOOLONG ? 0 : code < 0 ? code : 1;
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

    free(value->key);
    free(value->text);
    free(value->numbers);
    free(value);
}

/* Keep numbers up to the first string: the elements of an array have one type, and may be many. */
static int keep_elements(struct value *value, const struct gguf_json *item)
{
    size_t capacity = 0;

    for (bool is_text = false; item && !is_text && value->n_numbers < RUN_METADATA_MAX_NUMBERS;
         item = item->next) {
        double *numbers =
            gguf_grow(value->numbers, &capacity, value->n_numbers + 1, sizeof *numbers);

        if (!numbers)
            return -ENOMEM;
        value->numbers = numbers;
        numbers[value->n_numbers++] = item->kind == GGUF_JSON_NUMBER  ? item->number
                                      : item->kind == GGUF_JSON_TRUE  ? 1
                                      : item->kind == GGUF_JSON_FALSE ? 0
                                                                      : NAN;
        is_text = item->kind == GGUF_JSON_STRING;
    }
    return 0;
}

static int keep(struct value *value, const struct gguf_json *json)
{
    value->kind = json->kind;
    value->number = json->number;
    if (json->kind == GGUF_JSON_ARRAY)
        return keep_elements(value, json->child);
    if (json->kind != GGUF_JSON_STRING)
        return 0;
    value->text = malloc(json->text.length_bytes + 1);
    if (!value->text)
        return -ENOMEM;
    memcpy(value->text, json->text.data, json->text.length_bytes + 1);
    return 0;
}

static int read_value(const struct run_metadata *metadata, struct value *value,
                      struct run_failure *failure)
{
    struct run_json json;
    int code = read_key(metadata, value->key, &json, failure);

    value->is_there = code > 0;
    if (code <= 0)
        return code;
    if (keep(value, json.values) < 0)
        code = run_fail_memory(failure);
    run_json_free(&json);
    return code < 0 ? code : 0;
}

/* Return the value of a key. NULL if it is missing, or after setting the status. */
static const struct value *find(const struct run_metadata *metadata, const char *key)
{
    char buffer[KEY_BYTES];
    const struct value wanted = {.key = (char *)(uintptr_t)full_key(metadata, key, buffer)};
    struct run_failure failure;
    struct value **node, *value;
    int code;

    node = (struct value **)tfind(&wanted, &metadata->cache->values, compare_keys);
    if (node)
        return (*node)->is_there ? *node : NULL;
    value = calloc(1, sizeof *value);
    if (value)
        value->key = strdup(wanted.key);
    if (!value || !value->key) {
        free(value);
        remember(metadata, run_fail_memory(&failure), &failure);
        return NULL;
    }
    code = remember(metadata, read_value(metadata, value, &failure), &failure);
    if (code == 0 && !tsearch(value, &metadata->cache->values, compare_keys))
        code = remember(metadata, run_fail_memory(&failure), &failure);
    if (code != 0) {
        free_value(value);
        return NULL;
    }
    return value->is_there ? value : NULL;
}

/* ---- all of it ---- */

int run_metadata_open(int tree_fd, struct run_metadata **out, struct run_failure *failure)
{
    struct run_metadata *metadata = calloc(1, sizeof *metadata);
    const char *architecture;
    int fd, code;

    *out = NULL;
    if (!metadata)
        return run_fail_memory(failure);
    metadata->tree_fd = tree_fd;
    metadata->cache = calloc(1, sizeof *metadata->cache);
    if (!metadata->cache) {
        run_metadata_close(metadata);
        return run_fail_memory(failure);
    }
    fd = run_open_below(tree_fd, "metadata", O_RDONLY | O_DIRECTORY);
    if (fd < 0) {
        code = run_fail(failure, fd, "metadata: %s", run_open_below_error(fd));
        run_metadata_close(metadata);
        return code;
    }
    close(fd);
    architecture = run_metadata_string(metadata, "general.architecture");
    metadata->architecture = strdup(architecture ? architecture : "");
    if (!metadata->architecture)
        remember(metadata, run_fail_memory(failure), failure);
    code = run_metadata_status(metadata, failure);
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
    if (metadata->cache)
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
    return find(metadata, key) != NULL;
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
    const struct value *value = find(metadata, key);

    return value && value->kind == GGUF_JSON_STRING ? value->text : NULL;
}

static bool is_bool(const struct value *value)
{
    return value->kind == GGUF_JSON_TRUE || value->kind == GGUF_JSON_FALSE;
}

int run_metadata_bool(const struct run_metadata *metadata, const char *key, bool *is_true,
                      struct run_failure *failure)
{
    const struct value *value = find(metadata, key);
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
    const struct value *value = find(metadata, key);

    return value ? value->kind == GGUF_JSON_TRUE : otherwise;
}

const double *run_metadata_numbers(const struct run_metadata *metadata, const char *key, size_t *n)
{
    static const double none;
    const struct value *value = find(metadata, key);

    *n = value ? value->n_numbers : 0;
    if (!value || value->kind != GGUF_JSON_ARRAY)
        return NULL;
    return value->numbers ? value->numbers : &none;
}

int run_metadata_each(const struct run_metadata *metadata, const char *key, run_take_element *take,
                      void *context, struct run_failure *failure)
{
    char buffer[KEY_BYTES];
    struct run_json json;
    uint32_t index = 0;
    int code;

    key = full_key(metadata, key, buffer);
    code = read_key(metadata, key, &json, failure);
    if (code <= 0)
        return code;
    if (json.values->kind != GGUF_JSON_ARRAY)
        code = run_fail(failure, -EINVAL, "metadata: %s: not an array", key);
    for (const struct gguf_json *item = json.values->child; code > 0 && item; item = item->next)
        code = take(context, index++, item, failure);
    run_json_free(&json);
    return code < 0 ? code : 0;
}

/* ---- numbers ---- */

/* Return 1 and the number, 0 if the key is missing, or a negative errno. */
static int find_number(const struct run_metadata *metadata, const char *key, size_t index,
                       double *number, struct run_failure *failure)
{
    const struct value *value = find(metadata, key);
    char buffer[KEY_BYTES];

    if (!value)
        return run_metadata_status(metadata, failure);
    key = full_key(metadata, key, buffer);
    if (is_bool(value))
        return run_fail(failure, -EINVAL, "metadata: %s: a bool, not a number", key);
    if (value->kind == GGUF_JSON_ARRAY && index == RUN_SCALAR)
        return run_fail(failure, -EINVAL, "metadata: %s: an array, not one number", key);
    if (value->kind == GGUF_JSON_ARRAY && index >= value->n_numbers)
        return run_fail(failure, -EINVAL, "metadata: %s: %zu values, layer %zu has none", key,
                        value->n_numbers, index);
    *number = value->kind == GGUF_JSON_ARRAY    ? value->numbers[index]
              : value->kind == GGUF_JSON_NUMBER ? value->number
                                                : NAN;
    if (isnan(*number))
        return run_fail(failure, -EINVAL, "metadata: %s: not a number", key);
    return 1;
}

int run_metadata_u32_at(const struct run_metadata *metadata, const char *key, size_t index,
                        uint32_t max, uint32_t *value, struct run_failure *failure)
{
    char buffer[KEY_BYTES];
    double number = 0;
    int found = find_number(metadata, key, index, &number, failure);

    if (found <= 0)
        return found;
    if (!(number >= 0 && number <= max) || number != floor(number))
        return run_fail(failure, -EINVAL, "metadata: %s: %.17g, not an integer from 0 to %u",
                        full_key(metadata, key, buffer), number, max);
    *value = (uint32_t)number;
    return 0;
}

int run_metadata_float_at(const struct run_metadata *metadata, const char *key, size_t index,
                          float *value, struct run_failure *failure)
{
    char buffer[KEY_BYTES];
    double number = 0;
    int found = find_number(metadata, key, index, &number, failure);

    if (found <= 0)
        return found;
    if (!isfinite((float)number))
        return run_fail(failure, -EINVAL, "metadata: %s: %.17g is too large for a float",
                        full_key(metadata, key, buffer), number);
    *value = (float)number;
    return 0;
}

int run_metadata_double(const struct run_metadata *metadata, const char *key, double *value,
                        struct run_failure *failure)
{
    double number = 0;
    int found = find_number(metadata, key, RUN_SCALAR, &number, failure);

    if (found <= 0)
        return found;
    *value = number;
    return 0;
}

int run_metadata_u32(const struct run_metadata *metadata, const char *key, uint32_t max,
                     uint32_t *value, struct run_failure *failure)
{
    return run_metadata_u32_at(metadata, key, RUN_SCALAR, max, value, failure);
}

int run_metadata_need_u32(const struct run_metadata *metadata, const char *key, uint32_t min,
                          uint32_t max, uint32_t *value, struct run_failure *failure)
{
    char buffer[KEY_BYTES];
    int code = run_metadata_u32(metadata, key, max, value, failure);

    if (code < 0)
        return code;
    if (!run_metadata_has(metadata, key))
        return run_fail(failure, -ENOENT, "metadata: no %s", full_key(metadata, key, buffer));
    if (*value < min)
        return run_fail(failure, -EINVAL, "metadata: %s: %u is below %u",
                        full_key(metadata, key, buffer), *value, min);
    return code;
}
