/*
 * Reads the elements of a tensor as data of some type: all numbers that ggufs serves or computes
 * with come from here. Stored data of the same type are copied, others decoded and encoded.
 */
#pragma once

#include "gguf/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A function applied to each value, as a float32, before it is rounded to the type. */
enum gguf_map {
    GGUF_MAP_NONE,
    GGUF_MAP_ADD,            /* the value plus a constant */
    GGUF_MAP_LOG_OF_NEGATED, /* log(-value) */
};

/*
 * The elements of a tensor in row-major order, as little-endian data of `type`: the tensor's own
 * type, dequant_modern() of it, or F32, F16, BF16 or another type with an encoder, for which the
 * tensor needs a decoder and rows of whole blocks.
 */
struct gguf_elements {
    const struct gguf_model *model;
    const struct gguf_tensor *tensor;
    const struct dequant_type *type;
    enum gguf_map map; /* GGUF_MAP_NONE unless `type` has an encoder */
    float constant;    /* for GGUF_MAP_ADD */
};

/* Get the size of these data in bytes. Returns 0, or -EOVERFLOW beyond 2^64. */
int gguf_elements_size(const struct gguf_tensor *tensor, const struct dequant_type *type,
                       uint64_t *size_bytes);

/*
 * Write bytes `offset` to `offset + length` of the data, which must lie in them, to `out`. Only the
 * blocks of this range are read. Returns 0 or the error of gguf_file_read().
 */
int gguf_elements_read(const struct gguf_elements *of, uint64_t offset, size_t length, char *out);

/*
 * The same without gguf_file_check(), which the caller of many short reads calls once after them.
 * *end_offset, in the tensor's file, is increased to the end of the bytes that were read.
 */
int gguf_elements_read_unchecked(const struct gguf_elements *of, uint64_t offset, size_t length,
                                 char *out, uint64_t *end_offset);

/* Return true if the file stores the bytes of these data one after the other. */
bool gguf_elements_are_stored(const struct gguf_elements *of);

/* Map n values in place, and write them to `out`, of any alignment, as data of of->type. */
void gguf_encode_values(const struct gguf_elements *of, float *values, void *out, size_t n);

/* Decode n_blocks blocks of a row, in either byte order; otherwise like dequant_decode_row(). */
void gguf_decode_blocks(const struct gguf_tensor *tensor, struct dequant_row row,
                        const uint8_t *blocks, float *out, size_t n_blocks);
