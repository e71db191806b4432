#include "contrib/runner/tree/metadata.h"

#include "contrib/runner/tree/json_file.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Enough for a vocabulary of some million tokens; what is made of it in memory is larger. */
#define LIMIT_BYTES ((size_t)256 << 20)

/* The longest key that is asked for. */
#define KEY_BYTES 256

struct key {
    const cJSON *value;
    size_t index; /* in the file */
};

struct run_metadata {
    cJSON *values;
    struct key *keys; /* sorted: a file may have very many, and layers ask for theirs */
    size_t n_keys;
    const char *architecture;
};

/* Of equal keys the first counts. */
static int compare_keys(const void *a, const void *b)
{
    const struct key *left = a, *right = b;
    const int order = strcmp(left->value->string, right->value->string);

    return order ? order : (left->index > right->index) - (left->index < right->index);
}

static int sort_keys(struct run_metadata *metadata)
{
    const cJSON *value;
    size_t n = 0;

    cJSON_ArrayForEach(value, metadata->values) n++;
    metadata->keys = calloc(n ? n : 1, sizeof *metadata->keys);
    if (!metadata->keys)
        return -ENOMEM;
    cJSON_ArrayForEach(value, metadata->values)
    {
        metadata->keys[metadata->n_keys] = (struct key){value, metadata->n_keys};
        metadata->n_keys++;
    }
    qsort(metadata->keys, n, sizeof *metadata->keys, compare_keys);
    return 0;
}

int run_metadata_open(int tree_fd, struct run_metadata **out, struct run_failure *failure)
{
    struct run_metadata *metadata = calloc(1, sizeof *metadata);
    int code;

    *out = NULL;
    if (!metadata)
        return run_fail_memory(failure);
    code = run_json_read(tree_fd, "metadata.json", LIMIT_BYTES, &metadata->values, failure);
    if (code == 0 && sort_keys(metadata) < 0)
        code = run_fail_memory(failure);
    if (code < 0) {
        run_metadata_close(metadata);
        return code;
    }
    metadata->architecture = "";
    if (run_metadata_string(metadata, "general.architecture"))
        metadata->architecture = run_metadata_string(metadata, "general.architecture");
    *out = metadata;
    return 0;
}

void run_metadata_close(struct run_metadata *metadata)
{
    if (!metadata)
        return;
    cJSON_Delete(metadata->values);
    free(metadata->keys);
    free(metadata);
}

const char *run_metadata_architecture(const struct run_metadata *metadata)
{
    return metadata->architecture;
}

static const char *full_key(const struct run_metadata *metadata, const char *key,
                            char buffer[KEY_BYTES])
{
    if (key[0] != '.')
        return key;
    snprintf(buffer, KEY_BYTES, "%s%s", metadata->architecture, key);
    return buffer;
}

const cJSON *run_metadata_find(const struct run_metadata *metadata, const char *key)
{
    char buffer[KEY_BYTES];
    size_t low = 0, high = metadata->n_keys;

    key = full_key(metadata, key, buffer);
    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (strcmp(metadata->keys[middle].value->string, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == metadata->n_keys || strcmp(metadata->keys[low].value->string, key) != 0)
        return NULL;
    return metadata->keys[low].value;
}

const char *run_metadata_string(const struct run_metadata *metadata, const char *key)
{
    return cJSON_GetStringValue(run_metadata_find(metadata, key));
}

bool run_metadata_is_true(const struct run_metadata *metadata, const char *key)
{
    return cJSON_IsTrue(run_metadata_find(metadata, key));
}

/* 1 and the number, 0 if there is no such key, or -EINVAL. */
static int find_number(const struct run_metadata *metadata, const char *key, size_t index,
                       double *number, struct run_failure *failure)
{
    const cJSON *value = run_metadata_find(metadata, key);
    char buffer[KEY_BYTES];

    if (!value)
        return 0;
    key = full_key(metadata, key, buffer);
    if (cJSON_IsArray(value)) {
        const cJSON *array = value;

        /* Not counted before: arrays may be long. */
        value = index > INT_MAX ? NULL : cJSON_GetArrayItem(array, (int)index);
        if (!value)
            return run_fail(failure, -EINVAL, "metadata.json: %s: %d values, layer %zu has none",
                            key, cJSON_GetArraySize(array), index);
    }
    if (cJSON_IsBool(value))
        *number = cJSON_IsTrue(value);
    else if (cJSON_IsNumber(value))
        *number = value->valuedouble;
    else
        return run_fail(failure, -EINVAL, "metadata.json: %s: not a number", key);
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
        return run_fail(failure, -EINVAL,
                        "metadata.json: %s: %.17g, not a whole number from 0 to %u",
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
        return run_fail(failure, -EINVAL, "metadata.json: %s: %.17g is too large",
                        full_key(metadata, key, buffer), number);
    *value = (float)number;
    return 0;
}

int run_metadata_u32(const struct run_metadata *metadata, const char *key, uint32_t max,
                     uint32_t *value, struct run_failure *failure)
{
    return run_metadata_u32_at(metadata, key, 0, max, value, failure);
}

int run_metadata_float(const struct run_metadata *metadata, const char *key, float *value,
                       struct run_failure *failure)
{
    return run_metadata_float_at(metadata, key, 0, value, failure);
}

int run_metadata_need_u32(const struct run_metadata *metadata, const char *key, uint32_t min,
                          uint32_t max, uint32_t *value, struct run_failure *failure)
{
    char buffer[KEY_BYTES];
    int code;

    if (!run_metadata_find(metadata, key))
        return run_fail(failure, -ENOENT, "metadata.json: no %s", full_key(metadata, key, buffer));
    code = run_metadata_u32(metadata, key, max, value, failure);
    if (code == 0 && *value < min)
        return run_fail(failure, -EINVAL, "metadata.json: %s: %u is below %u",
                        full_key(metadata, key, buffer), *value, min);
    return code;
}
