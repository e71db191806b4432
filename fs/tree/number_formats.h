/* The number formats of the tree's files, and the conversion of a tensor's values to them. */
#ifndef GGUFS_FS_NUMBER_FORMATS_H
#define GGUFS_FS_NUMBER_FORMATS_H

#include "gguf/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All are little-endian. */
enum fs_format {
    FS_F32,  /* IEEE float32 */
    FS_F16,  /* IEEE float16, rounded to nearest, ties to even */
    FS_BF16, /* the upper half of a float32, rounded to nearest, ties to even */
};

/* A function applied to each value, as a float32, before it is rounded to the format. */
enum fs_map {
    FS_UNCHANGED,
    FS_ADD,            /* the value plus a constant */
    FS_LOG_OF_NEGATED, /* log(-value) */
};

struct fs_conversion {
    enum fs_format format;
    enum fs_map map;
    float constant; /* of FS_ADD */
};

/* Return the name of the format, "BF16": that of ggml's type and of safetensors' dtype. */
const char *fs_format_name(enum fs_format format);

/* Return the type of ggml of that name. */
const struct dequant_type *fs_format_type(enum fs_format format);

/* Return the size of a number in bytes. */
static inline size_t fs_format_bytes(enum fs_format format)
{
    return format == FS_F32 ? sizeof(float) : sizeof(uint16_t);
}

/* Return the number of whole numbers in n_bytes, faster than by a division. */
static inline uint64_t fs_format_count(enum fs_format format, uint64_t n_bytes)
{
    return format == FS_F32 ? n_bytes / sizeof(float) : n_bytes / sizeof(uint16_t);
}

/* Return true if the tensor's file stores the numbers that the conversion gives, in this format. */
bool fs_is_stored_as(const struct gguf_tensor *tensor, const struct fs_conversion *conversion);

/*
 * Convert n values to `out`, which may have any alignment. Of a conversion that is not
 * FS_UNCHANGED, the values are overwritten; otherwise they may have any alignment as well.
 */
void fs_convert(const struct fs_conversion *conversion, float *values, void *out, size_t n);

#endif
