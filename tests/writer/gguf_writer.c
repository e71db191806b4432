#include "tests/writer/gguf_writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_ALIGNMENT_BYTES = 32 };

struct buffer {
    unsigned char *bytes;
    size_t used_bytes;
    size_t room_bytes;
};

struct gguf_writer {
    uint32_t version;
    bool big_endian;
    int error;

    uint64_t n_keys;
    uint64_t n_tensors;
    uint64_t header_keys; /* counts for the header, if overridden */
    uint64_t header_tensors;
    bool key_count_overridden;
    bool tensor_count_overridden;

    uint32_t alignment_bytes;
    size_t offset_at; /* position in `infos` of the last tensor's offset; 0: no tensor yet */

    struct buffer keys;
    struct buffer infos;
    struct buffer data;
};

/* Append n_bytes zero bytes and return a pointer to them, or NULL after an error. */
static unsigned char *grow(struct gguf_writer *w, struct buffer *b, size_t n_bytes)
{
    if (w->error)
        return NULL;

    size_t need_bytes;
    if (__builtin_add_overflow(b->used_bytes, n_bytes, &need_bytes) || need_bytes > SIZE_MAX / 4) {
        w->error = -ENOMEM;
        return NULL;
    }
    if (need_bytes > b->room_bytes || !b->bytes) {
        size_t room_bytes = need_bytes * 2 + 64;
        unsigned char *bytes = realloc(b->bytes, room_bytes);
        if (!bytes) {
            w->error = -ENOMEM;
            return NULL;
        }
        b->bytes = bytes;
        b->room_bytes = room_bytes;
    }
    unsigned char *start = b->bytes + b->used_bytes;
    memset(start, 0, n_bytes);
    b->used_bytes = need_bytes;
    return start;
}

static void put_bytes(struct gguf_writer *w, struct buffer *b, const void *bytes, size_t n_bytes)
{
    unsigned char *to = grow(w, b, n_bytes);
    if (to && bytes && n_bytes > 0)
        memcpy(to, bytes, n_bytes);
}

static void store(unsigned char *to, uint64_t value, size_t width_bytes, bool big_endian)
{
    for (size_t i = 0; i < width_bytes; i++)
        to[big_endian ? width_bytes - 1 - i : i] = (unsigned char)(value >> (8 * i));
}

static void put(struct gguf_writer *w, struct buffer *b, uint64_t value, size_t width_bytes)
{
    unsigned char *to = grow(w, b, width_bytes);
    if (to)
        store(to, value, width_bytes, w->big_endian);
}

static void put_count(struct gguf_writer *w, struct buffer *b, uint64_t count)
{
    if (w->error)
        return;
    if (w->version == 1 && count > UINT32_MAX)
        w->error = -EOVERFLOW;
    else
        put(w, b, count, w->version == 1 ? 4 : 8);
}

static void put_string(struct gguf_writer *w, struct buffer *b, const void *bytes, size_t n_bytes)
{
    put_count(w, b, n_bytes);
    put_bytes(w, b, bytes, n_bytes);
}

static void pad(struct gguf_writer *w, struct buffer *b)
{
    if (w->error)
        return;
    size_t over_bytes = b->used_bytes % w->alignment_bytes;
    if (over_bytes != 0)
        grow(w, b, w->alignment_bytes - over_bytes);
}

struct gguf_writer *gguf_writer_open(uint32_t version, bool big_endian)
{
    struct gguf_writer *w = malloc(sizeof *w);
    if (!w)
        abort();
    *w = (struct gguf_writer){
        .version = version, .big_endian = big_endian, .alignment_bytes = DEFAULT_ALIGNMENT_BYTES};
    return w;
}

/* Assemble the parts of the file in `file`. */
static void assemble(struct gguf_writer *w, struct buffer *file)
{
    put_bytes(w, file, "GGUF", 4);
    put(w, file, w->version, 4);
    put_count(w, file, w->tensor_count_overridden ? w->header_tensors : w->n_tensors);
    put_count(w, file, w->key_count_overridden ? w->header_keys : w->n_keys);
    put_bytes(w, file, w->keys.bytes, w->keys.used_bytes);
    put_bytes(w, file, w->infos.bytes, w->infos.used_bytes);
    pad(w, file);
    put_bytes(w, file, w->data.bytes, w->data.used_bytes);
}

int gguf_writer_finish(struct gguf_writer *w, unsigned char **bytes, size_t *size_bytes)
{
    *bytes = NULL;
    *size_bytes = 0;

    struct buffer file = {0};
    assemble(w, &file);

    int error = w->error;
    if (error == 0) {
        *bytes = file.bytes;
        *size_bytes = file.used_bytes;
    } else {
        free(file.bytes);
    }
    free(w->keys.bytes);
    free(w->infos.bytes);
    free(w->data.bytes);
    free(w);
    return error;
}

int gguf_writer_save(struct gguf_writer *w, const char *path)
{
    unsigned char *bytes;
    size_t size_bytes;
    int error = gguf_writer_finish(w, &bytes, &size_bytes);
    if (error)
        return error;

    FILE *file = fopen(path, "we");
    if (!file || fwrite(bytes, 1, size_bytes, file) != size_bytes)
        error = -errno;
    if (file && fclose(file) != 0 && error == 0)
        error = -errno;
    free(bytes);
    return error;
}

void gguf_writer_key(struct gguf_writer *w, const void *key, size_t key_bytes, uint32_t type)
{
    put_string(w, &w->keys, key, key_bytes);
    put(w, &w->keys, type, 4);
    w->n_keys++;
}

/* The bits of floating-point values go through integers, as every value does. */
static uint64_t f32_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t f64_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Define gguf_writer_<suffix>() and gguf_writer_add_<suffix>() for a value of fixed width. */
#define DEFINE_VALUE(suffix, c_type, type_id, width_bytes, to_bits)                                \
    void gguf_writer_##suffix(struct gguf_writer *w, c_type value)                                 \
    {                                                                                              \
        put(w, &w->keys, to_bits(value), width_bytes);                                             \
    }                                                                                              \
    void gguf_writer_add_##suffix(struct gguf_writer *w, const char *key, c_type value)            \
    {                                                                                              \
        gguf_writer_key(w, key, strlen(key), type_id);                                             \
        gguf_writer_##suffix(w, value);                                                            \
    }

DEFINE_VALUE(u8, uint8_t, GGUF_WRITER_U8, 1, (uint64_t))
DEFINE_VALUE(i8, int8_t, GGUF_WRITER_I8, 1, (uint64_t))
DEFINE_VALUE(u16, uint16_t, GGUF_WRITER_U16, 2, (uint64_t))
DEFINE_VALUE(i16, int16_t, GGUF_WRITER_I16, 2, (uint64_t))
DEFINE_VALUE(u32, uint32_t, GGUF_WRITER_U32, 4, (uint64_t))
DEFINE_VALUE(i32, int32_t, GGUF_WRITER_I32, 4, (uint64_t))
DEFINE_VALUE(f32, float, GGUF_WRITER_F32, 4, f32_bits)
DEFINE_VALUE(bool, bool, GGUF_WRITER_BOOL, 1, (uint64_t))
DEFINE_VALUE(u64, uint64_t, GGUF_WRITER_U64, 8, (uint64_t))
DEFINE_VALUE(i64, int64_t, GGUF_WRITER_I64, 8, (uint64_t))
DEFINE_VALUE(f64, double, GGUF_WRITER_F64, 8, f64_bits)

void gguf_writer_string(struct gguf_writer *w, const void *bytes, size_t n_bytes)
{
    put_string(w, &w->keys, bytes, n_bytes);
}

void gguf_writer_add_string(struct gguf_writer *w, const char *key, const char *value)
{
    gguf_writer_key(w, key, strlen(key), GGUF_WRITER_STRING);
    gguf_writer_string(w, value, strlen(value));
}

void gguf_writer_array(struct gguf_writer *w, uint32_t element_type, uint64_t n_elements)
{
    put(w, &w->keys, element_type, 4);
    put_count(w, &w->keys, n_elements);
}

void gguf_writer_add_array(struct gguf_writer *w, const char *key, uint32_t element_type,
                           uint64_t n_elements)
{
    gguf_writer_key(w, key, strlen(key), GGUF_WRITER_ARRAY);
    gguf_writer_array(w, element_type, n_elements);
}

void gguf_writer_add_strings(struct gguf_writer *w, const char *key, const char *const *values,
                             size_t n_values)
{
    gguf_writer_add_array(w, key, GGUF_WRITER_STRING, n_values);
    for (size_t i = 0; i < n_values; i++)
        gguf_writer_string(w, values[i], strlen(values[i]));
}

void gguf_writer_count(struct gguf_writer *w, uint64_t count)
{
    put_count(w, &w->keys, count);
}

void gguf_writer_raw(struct gguf_writer *w, const void *bytes, size_t n_bytes)
{
    put_bytes(w, &w->keys, bytes, n_bytes);
}

void gguf_writer_set_alignment(struct gguf_writer *w, uint32_t alignment_bytes)
{
    if (w->error)
        return;
    if (alignment_bytes == 0 || w->n_tensors > 0) {
        w->error = -EINVAL;
        return;
    }
    w->alignment_bytes = alignment_bytes;
    gguf_writer_add_u32(w, "general.alignment", alignment_bytes);
}

void gguf_writer_add_tensor(struct gguf_writer *w, const void *name, size_t name_bytes,
                            uint32_t n_dims, const uint64_t *ne, uint32_t type, const void *data,
                            size_t data_bytes)
{
    if (w->error)
        return;
    put_string(w, &w->infos, name, name_bytes);
    put(w, &w->infos, n_dims, 4);
    for (uint32_t i = 0; i < n_dims; i++)
        put_count(w, &w->infos, ne[i]);
    put(w, &w->infos, type, 4);
    w->offset_at = w->infos.used_bytes;
    put(w, &w->infos, w->data.used_bytes, 8);
    w->n_tensors++;

    put_bytes(w, &w->data, data, data_bytes);
    pad(w, &w->data);
}

void gguf_writer_override_offset(struct gguf_writer *w, uint64_t offset)
{
    if (w->error)
        return;
    if (w->n_tensors == 0)
        w->error = -EINVAL;
    else
        store(w->infos.bytes + w->offset_at, offset, 8, w->big_endian);
}

void gguf_writer_raw_info(struct gguf_writer *w, const void *bytes, size_t n_bytes)
{
    put_bytes(w, &w->infos, bytes, n_bytes);
}

void gguf_writer_override_tensor_count(struct gguf_writer *w, uint64_t n_tensors)
{
    w->header_tensors = n_tensors;
    w->tensor_count_overridden = true;
}

void gguf_writer_override_key_count(struct gguf_writer *w, uint64_t n_keys)
{
    w->header_keys = n_keys;
    w->key_count_overridden = true;
}
