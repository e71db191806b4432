#include "contrib/runner/engine/key_reader.h"

#include <errno.h>

void run_read_u32(struct run_key_reader *reader, const char *key, uint32_t max, uint32_t *value)
{
    if (reader->code == 0)
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
    if (reader->code == 0)
        reader->code = run_metadata_u32_at(reader->metadata, key, index_of(reader, key, layer), max,
                                           value, reader->failure);
}

void run_read_float(struct run_key_reader *reader, const char *key, float *value)
{
    if (reader->code == 0)
        reader->code = run_metadata_float(reader->metadata, key, value, reader->failure);
}

void run_read_float_at(struct run_key_reader *reader, const char *key, size_t layer, float *value)
{
    if (reader->code == 0)
        reader->code = run_metadata_float_at(reader->metadata, key, index_of(reader, key, layer),
                                             value, reader->failure);
}

void run_read_refuse(struct run_key_reader *reader, const char *text)
{
    if (reader->code == 0)
        reader->code = run_fail(reader->failure, -EINVAL, "metadata: %s", text);
}

/* Returns the scale, or `otherwise` if the key is missing or 0. */
float run_read_scale(struct run_key_reader *reader, const char *key, float otherwise)
{
    float scale = 0;

    run_read_float(reader, key, &scale);
    return scale == 0 ? otherwise : scale;
}
