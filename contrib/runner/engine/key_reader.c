#include "contrib/runner/engine/key_reader.h"

#include <errno.h>
#include <stdio.h>

static bool has_key(const void *metadata, const char *key)
{
    char name[GGUF_KEY_NAME_BYTES + 1];

    snprintf(name, sizeof name, ".%s", key);
    return run_metadata_has(metadata, key[0] == '/' ? key + 1 : name);
}

void run_read_check(struct run_key_reader *reader)
{
    const char *missing;
    size_t length;
    bool is_whole;

    if (reader->code < 0 ||
        gguf_check_keys(reader->model, has_key, reader->metadata, &missing, &length))
        return;
    is_whole = missing[0] == '/';
    reader->code =
        run_fail(reader->failure, -ENOENT,
                 "metadata: no %s%s%.*s: every model of this architecture has the key; the file is "
                 "incomplete, convert the model again or add the key with ggufs --set",
                 is_whole ? "" : run_metadata_architecture(reader->metadata), is_whole ? "" : ".",
                 (int)(length - is_whole), missing + is_whole);
}

/* Return true if the key is to be read. If it has a default, store that at *value. */
static bool is_read(const struct run_key_reader *reader, const char *key, double *value,
                    bool *has_default)
{
    enum gguf_key_rule rule;

    *has_default = false;
    if (reader->code < 0)
        return false;
    if (key[0] != '.')
        return true;
    rule = gguf_key_rule(reader->model, key + 1, value);
    *has_default = rule == GGUF_KEY_FIXED ||
                   (rule == GGUF_KEY_HAS_DEFAULT && !run_metadata_has(reader->metadata, key));
    return rule != GGUF_KEY_UNUSED;
}

bool run_read_has(const struct run_key_reader *reader, const char *key)
{
    double value;
    bool has_default;

    return is_read(reader, key, &value, &has_default) && run_metadata_has(reader->metadata, key);
}

void run_read_u32(struct run_key_reader *reader, const char *key, uint32_t max, uint32_t *value)
{
    double number;
    bool has_default;

    if (!is_read(reader, key, &number, &has_default))
        return;
    if (has_default)
        *value = (uint32_t)number;
    else
        reader->code = run_metadata_u32(reader->metadata, key, max, value, reader->failure);
}

void run_need_u32(struct run_key_reader *reader, const char *key, uint32_t max, uint32_t *value)
{
    if (reader->code == 0)
        reader->code = run_metadata_need_u32(reader->metadata, key, 1, max, value, reader->failure);
}

/* Return the index of the layer's value in the array of that key. */
static size_t index_of(const struct run_key_reader *reader, const char *key, size_t layer)
{
    size_t n;

    if (layer < reader->n_needed || reader->n_needed == 0 ||
        !run_metadata_numbers(reader->metadata, key, &n))
        return layer;
    return n >= reader->n_needed && layer >= n ? n - 1 : layer;
}

void run_read_u32_at(struct run_key_reader *reader, const char *key, size_t layer, uint32_t max,
                     uint32_t *value)
{
    double number;
    bool has_default;

    if (!is_read(reader, key, &number, &has_default))
        return;
    if (has_default)
        *value = (uint32_t)number;
    else
        reader->code = run_metadata_u32_at(reader->metadata, key, index_of(reader, key, layer), max,
                                           value, reader->failure);
}

void run_read_float(struct run_key_reader *reader, const char *key, float *value)
{
    double number;
    bool has_default;

    if (!is_read(reader, key, &number, &has_default))
        return;
    if (has_default)
        *value = (float)number;
    else
        reader->code = run_metadata_float(reader->metadata, key, value, reader->failure);
}

void run_read_float_at(struct run_key_reader *reader, const char *key, size_t layer, float *value)
{
    double number;
    bool has_default;

    if (!is_read(reader, key, &number, &has_default))
        return;
    if (has_default)
        *value = (float)number;
    else
        reader->code = run_metadata_float_at(reader->metadata, key, index_of(reader, key, layer),
                                             value, reader->failure);
}

bool run_read_bool(struct run_key_reader *reader, const char *key)
{
    double number = 0;
    bool has_default;

    if (!is_read(reader, key, &number, &has_default))
        return false;
    return has_default ? number != 0 : run_metadata_is_true(reader->metadata, key);
}

const char *run_read_string(const struct run_key_reader *reader, const char *key)
{
    return run_read_has(reader, key) ? run_metadata_string(reader->metadata, key) : NULL;
}

void run_read_refuse(struct run_key_reader *reader, const char *text)
{
    if (reader->code == 0)
        reader->code = run_fail(reader->failure, -EINVAL, "metadata: %s", text);
}

float run_read_scale(struct run_key_reader *reader, const char *key, float otherwise)
{
    float scale = 0;

    run_read_float(reader, key, &scale);
    return scale == 0 ? otherwise : scale;
}
