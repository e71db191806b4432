#include "contrib/runner/tree/metadata.h"

#include "contrib/runner/tree/json_file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Enough for a vocabulary of some million tokens. */
#define LIMIT_BYTES ((size_t)1 << 30)

/* The longest key that is asked for. */
#define KEY_BYTES 256

struct run_metadata {
    cJSON *keys;
    const char *architecture;
};

int run_metadata_open(int tree_fd, struct run_metadata **out, struct run_failure *failure)
{
    struct run_metadata *metadata = calloc(1, sizeof *metadata);
    int code;

    *out = NULL;
    if (!metadata)
        return run_fail_memory(failure);
    code = run_json_read(tree_fd, "metadata.json", LIMIT_BYTES, &metadata->keys, failure);
    if (code < 0) {
        free(metadata);
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
    cJSON_Delete(metadata->keys);
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

    return cJSON_GetObjectItemCaseSensitive(metadata->keys, full_key(metadata, key, buffer));
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
        size_t n = (size_t)cJSON_GetArraySize(value);

        if (index >= n)
            return run_fail(failure, -EINVAL, "metadata.json: %s: %zu values, layer %zu has none",
                            key, n, index);
        value = cJSON_GetArrayItem(value, (int)index);
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
    double number;
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
    double number;
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
