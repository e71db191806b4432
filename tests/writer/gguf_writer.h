/*
 * Writes a GGUF file into memory: for tests, which also need files that are wrong on purpose.
 *
 *     struct gguf_writer *w = gguf_writer_open(3, false);
 *     gguf_writer_add_string(w, "general.architecture", "llama");
 *     gguf_writer_add_u32(w, "llama.block_count", 1);
 *     gguf_writer_add_tensor(w, "output.weight", 13, 2, ne, type_id, data, data_bytes);
 *     int error = gguf_writer_finish(w, &bytes, &size_bytes);
 *
 * An error is kept and reported by gguf_writer_finish(); after it, the other functions do nothing,
 * so that only finish needs a check. The writer copies all that it is given. Nothing is checked
 * that a reader must check: keys may repeat, arrays may be shorter than they say, tensors may have
 * any type, shape and size.
 *
 * Each writer belongs to one thread at a time. The format: ggml's docs/gguf.md.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gguf_writer;

/* The value types, by the numbers that files hold. */
enum gguf_writer_type {
    GGUF_WRITER_U8 = 0,
    GGUF_WRITER_I8 = 1,
    GGUF_WRITER_U16 = 2,
    GGUF_WRITER_I16 = 3,
    GGUF_WRITER_U32 = 4,
    GGUF_WRITER_I32 = 5,
    GGUF_WRITER_F32 = 6,
    GGUF_WRITER_BOOL = 7,
    GGUF_WRITER_STRING = 8,
    GGUF_WRITER_ARRAY = 9,
    GGUF_WRITER_U64 = 10,
    GGUF_WRITER_I64 = 11,
    GGUF_WRITER_F64 = 12,
};

/*
 * Start a file. Version 1 has counts, lengths and dimensions as u32, every other version as u64.
 * Any version number can be written, whether it exists or not. End the writer with
 * gguf_writer_finish() or gguf_writer_save(). Aborts if out of memory.
 */
struct gguf_writer *gguf_writer_open(uint32_t version, bool big_endian);

/*
 * Ends the writer, in any case. Returns 0 and the whole file in *bytes, which the caller frees, and
 * its size in *size_bytes. On an error *bytes is NULL and *size_bytes 0; the error is the first of:
 *   -ENOMEM     memory is short
 *   -EOVERFLOW  a count, length or dimension does not fit in the 32 bits of version 1
 *   -EINVAL     the alignment was 0, or was set after a tensor was added; or an offset was to be
 *               overridden and there was no tensor
 */
int gguf_writer_finish(struct gguf_writer *w, unsigned char **bytes, size_t *size_bytes);

/*
 * Write the file to `path`, replacing an existing file, and end the writer in any case. Returns 0,
 * an error of gguf_writer_finish(), or the negative errno of open, write or close; the file may
 * then be incomplete.
 */
int gguf_writer_save(struct gguf_writer *w, const char *path);

/* Add a key with its value. `key` and `value` are NUL-terminated strings. */
void gguf_writer_add_u8(struct gguf_writer *w, const char *key, uint8_t value);
void gguf_writer_add_i8(struct gguf_writer *w, const char *key, int8_t value);
void gguf_writer_add_u16(struct gguf_writer *w, const char *key, uint16_t value);
void gguf_writer_add_i16(struct gguf_writer *w, const char *key, int16_t value);
void gguf_writer_add_u32(struct gguf_writer *w, const char *key, uint32_t value);
void gguf_writer_add_i32(struct gguf_writer *w, const char *key, int32_t value);
void gguf_writer_add_f32(struct gguf_writer *w, const char *key, float value);
void gguf_writer_add_bool(struct gguf_writer *w, const char *key, bool value);
void gguf_writer_add_u64(struct gguf_writer *w, const char *key, uint64_t value);
void gguf_writer_add_i64(struct gguf_writer *w, const char *key, int64_t value);
void gguf_writer_add_f64(struct gguf_writer *w, const char *key, double value);
void gguf_writer_add_string(struct gguf_writer *w, const char *key, const char *value);
void gguf_writer_add_strings(struct gguf_writer *w, const char *key, const char *const *values,
                             size_t n_values);

/*
 * The same in parts: a key of any bytes with any type id, then its value from the calls below. An
 * array is gguf_writer_array() followed by as many values of its type as it announces; an array of
 * arrays has arrays as values. Arrays need no closing call.
 */
void gguf_writer_key(struct gguf_writer *w, const void *key, size_t key_bytes, uint32_t type);
void gguf_writer_add_array(struct gguf_writer *w, const char *key, uint32_t element_type,
                           uint64_t n_elements);

void gguf_writer_u8(struct gguf_writer *w, uint8_t value);
void gguf_writer_i8(struct gguf_writer *w, int8_t value);
void gguf_writer_u16(struct gguf_writer *w, uint16_t value);
void gguf_writer_i16(struct gguf_writer *w, int16_t value);
void gguf_writer_u32(struct gguf_writer *w, uint32_t value);
void gguf_writer_i32(struct gguf_writer *w, int32_t value);
void gguf_writer_f32(struct gguf_writer *w, float value);
void gguf_writer_bool(struct gguf_writer *w, bool value);
void gguf_writer_u64(struct gguf_writer *w, uint64_t value);
void gguf_writer_i64(struct gguf_writer *w, int64_t value);
void gguf_writer_f64(struct gguf_writer *w, double value);
void gguf_writer_string(struct gguf_writer *w, const void *bytes, size_t n_bytes);
void gguf_writer_array(struct gguf_writer *w, uint32_t element_type, uint64_t n_elements);

/* For broken values: a single count or length, in the width of the version; any bytes. */
void gguf_writer_count(struct gguf_writer *w, uint64_t count);
void gguf_writer_raw(struct gguf_writer *w, const void *bytes, size_t n_bytes);

/*
 * Set the alignment of the tensor data and add the key general.alignment. Without this call, the
 * alignment is 32 and the key is missing. Call it before the first tensor. Any value but 0 is
 * accepted; for a file whose key is wrong, use gguf_writer_add_u32().
 */
void gguf_writer_set_alignment(struct gguf_writer *w, uint32_t alignment_bytes);

/*
 * Add a tensor. `name` may be any bytes. `ne` has n_dims dimensions, ne[0] the fastest. `data` is
 * data_bytes bytes as they are to be stored, in the byte order of the file; NULL writes zeros. The
 * size need not fit the shape. The data follows earlier tensors' data, padded with zeros to the
 * alignment.
 */
void gguf_writer_add_tensor(struct gguf_writer *w, const void *name, size_t name_bytes,
                            uint32_t n_dims, const uint64_t *ne, uint32_t type, const void *data,
                            size_t data_bytes);

/*
 * For broken files: set another offset, relative to the start of the tensor data, in the info of
 * the last tensor, whose data stays in place; add any bytes to the tensor infos, which do not count
 * as a tensor; set other counts in the header.
 */
void gguf_writer_override_offset(struct gguf_writer *w, uint64_t offset);
void gguf_writer_raw_info(struct gguf_writer *w, const void *bytes, size_t n_bytes);
void gguf_writer_override_tensor_count(struct gguf_writer *w, uint64_t n_tensors);
void gguf_writer_override_key_count(struct gguf_writer *w, uint64_t n_keys);
