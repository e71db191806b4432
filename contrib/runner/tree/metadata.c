#include "contrib/runner/tree/metadata.h"

#include "gguf/support/strings.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Longer keys of unknown architectures are truncated. */
#define KEY_BYTES 512

/* Larger than any vocabulary. */
#define FILE_LIMIT_BYTES ((uint64_t)1 << 30)

struct run_metadata {
    struct run_json json; /* an object */
    const char *architecture;
};

static const struct gguf_json *find(const struct run_metadata *metadata, const char *key)
{
    char full[KEY_BYTES];

    snprintf(full, sizeof full, "%s%s", key[0] == '.' ? metadata->architecture : "", key);
    return gguf_json_member(metadata->json.values, full);
}

int run_metadata_open(int tree_fd, struct run_metadata **out, struct run_failure *failure)
{
    struct run_metadata *metadata = calloc(1, sizeof *metadata);
    const char *architecture;
    int code;

    *out = NULL;
    if (!metadata)
        return run_fail_memory(failure);
    code = run_json_read(tree_fd, "metadata.json", FILE_LIMIT_BYTES, &metadata->json, failure);
    if (code == 0 && metadata->json.values->kind != GGUF_JSON_OBJECT)
        code = run_fail(failure, -EINVAL, "metadata.json: not a JSON object");
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
    if (metadata)
        run_json_free(&metadata->json);
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
    const struct gguf_json *value = metadata->json.values->child;

    while (value && !gguf_text_starts_with(value->key.data, prefix))
        value = value->next;
    return value != NULL;
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

    if (!value)
        return 0;
    if (!is_bool(value))
        return run_fail(failure, -EINVAL, "metadata: %s: neither true nor false", value->key.data);
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

int run_metadata_array(const struct run_metadata *metadata, const char *key,
                       const struct gguf_json **array, struct run_failure *failure)
{
    *array = find(metadata, key);
    if (*array && (*array)->kind != GGUF_JSON_ARRAY)
        return run_fail(failure, -EINVAL, "metadata: %s: not an array", (*array)->key.data);
    return 0;
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
    double found;
    size_t n;

    if (!value)
        return 0;
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
