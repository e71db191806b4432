#include "contrib/runner/engine/hparams_parts.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>

static bool has_key(const void *metadata, const char *key)
{
    char name[GGUF_KEY_NAME_BYTES + 1];

    snprintf(name, sizeof name, ".%s", key);
    return run_metadata_has(metadata, key[0] == '/' ? key + 1 : name);
}

void run_read_check(struct run_key_reader *reader)
{
    struct gguf_string missing;
    bool is_whole;

    if (reader->code < 0 || gguf_check_keys(reader->model, has_key, reader->metadata, &missing))
        return;
    is_whole = missing.data[0] == '/';
    reader->code =
        run_fail(reader->failure, -ENOENT,
                 "metadata: no %s%s%.*s: every model of this architecture has the key; the file is "
                 "incomplete, convert the model again or add the key with ggufs --set",
                 is_whole ? "" : run_metadata_architecture(reader->metadata), is_whole ? "" : ".",
                 (int)missing.length_bytes - is_whole, missing.data + is_whole);
}

enum origin { NOWHERE, FROM_LISTS, FROM_FILE };

/* Return where the value of a key comes from. If that is the lists, store it at *value. */
static enum origin find_origin(const struct run_key_reader *reader, const char *key, double *value)
{
    enum gguf_key_rule rule = GGUF_KEY_OPTIONAL;

    if (reader->code < 0)
        return NOWHERE;
    if (key[0] == '.')
        rule = gguf_key_rule(reader->model, key + 1, value);
    if (rule == GGUF_KEY_UNUSED)
        return NOWHERE;
    return rule == GGUF_KEY_FIXED ||
                   (rule == GGUF_KEY_HAS_DEFAULT && !run_metadata_has(reader->metadata, key))
               ? FROM_LISTS
               : FROM_FILE;
}

bool run_read_has(const struct run_key_reader *reader, const char *key)
{
    return find_origin(reader, key, NULL) != NOWHERE && run_metadata_has(reader->metadata, key);
}

/* Return the index of the layer's value in the array of that key. */
static size_t index_of(const struct run_key_reader *reader, const char *key, size_t layer)
{
    size_t n;

    if (layer == RUN_SCALAR || layer < reader->n_needed || reader->n_needed == 0 ||
        !run_metadata_is_array(reader->metadata, key, &n))
        return layer;
    return n >= reader->n_needed && layer >= n ? n - 1 : layer;
}

/* Read a number. Returns false without one; then *number is undefined. */
static bool read_number(struct run_key_reader *reader, const char *key, size_t layer,
                        const struct run_range *range, double *number)
{
    const enum origin origin = find_origin(reader, key, number);

    if (origin == FROM_FILE) {
        *number = NAN;
        reader->code = run_metadata_number(reader->metadata, key, index_of(reader, key, layer),
                                           range, number, reader->failure);
    }
    return origin != NOWHERE && reader->code == 0 && !isnan(*number);
}

void run_read_u32_at(struct run_key_reader *reader, const char *key, size_t layer, uint32_t max,
                     uint32_t *value)
{
    const struct run_range range = {0, max, true};
    double number;

    if (read_number(reader, key, layer, &range, &number))
        *value = (uint32_t)number;
}

void run_read_u32(struct run_key_reader *reader, const char *key, uint32_t max, uint32_t *value)
{
    run_read_u32_at(reader, key, RUN_SCALAR, max, value);
}

void run_need_u32(struct run_key_reader *reader, const char *key, uint32_t max, uint32_t *value)
{
    const struct run_range range = {1, max, true};
    double number;

    if (read_number(reader, key, RUN_SCALAR, &range, &number))
        *value = (uint32_t)number;
    else if (reader->code == 0)
        reader->code =
            run_fail(reader->failure, -ENOENT, "metadata: no %s%s",
                     key[0] == '.' ? run_metadata_architecture(reader->metadata) : "", key);
}

void run_read_float_at(struct run_key_reader *reader, const char *key, size_t layer, float *value)
{
    static const struct run_range range = {-FLT_MAX, FLT_MAX, false};
    double number;

    if (read_number(reader, key, layer, &range, &number))
        *value = (float)number;
}

void run_read_float(struct run_key_reader *reader, const char *key, float *value)
{
    run_read_float_at(reader, key, RUN_SCALAR, value);
}

bool run_read_bool(struct run_key_reader *reader, const char *key)
{
    double number = 0;
    const enum origin origin = find_origin(reader, key, &number);
    bool is_true = origin == FROM_LISTS && number != 0;

    if (origin == FROM_FILE)
        reader->code = run_metadata_bool(reader->metadata, key, &is_true, reader->failure);
    return is_true;
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
