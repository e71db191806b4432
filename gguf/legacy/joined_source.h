/*
 * A source that joins the parts of an old model: it reads as the file that a converter without
 * parts would have written. No data are copied; what differs from the parts, as the dimensions of
 * tensors, is in memory.
 */
#pragma once

#include "gguf/file.h"
#include "gguf/support/shard_names.h"

#include <stddef.h>
#include <stdint.h>

/* The layout of the file while it is built; gguf_joined_open() ends that. */
struct gguf_joined;

/* Return an empty file, or NULL if out of memory. Free it with gguf_joined_free(). */
struct gguf_joined *gguf_joined_make(void);
void gguf_joined_free(struct gguf_joined *joined);

/* Return the bytes of the file so far. */
uint64_t gguf_joined_size(const struct gguf_joined *joined);

/* Append bytes, which are copied. Returns 0, -ENOMEM or -EOVERFLOW, as do the others. */
int gguf_joined_add_bytes(struct gguf_joined *joined, const void *bytes, size_t n_bytes);

/* Append n_bytes of the first part at `offset`. */
int gguf_joined_add_first(struct gguf_joined *joined, uint64_t offset, uint64_t n_bytes);

/*
 * Append n_bytes of each of n_parts parts, in all at `offset`: piece_bytes of the first, as many of
 * the second, and so on, in turn. n_bytes must be a multiple of piece_bytes.
 */
int gguf_joined_add_pieces(struct gguf_joined *joined, uint64_t offset, uint64_t n_bytes,
                           uint64_t piece_bytes, uint32_t n_parts);

/*
 * Open the file as a source with the path of the first part. `joined` and all parts are taken over,
 * also on failure; the parts become all zero. They must not be growing. Returns 0, or a negative
 * errno with the reason in `report`.
 */
int gguf_joined_open(struct gguf_joined *joined, struct gguf_file *parts[], uint32_t n_parts,
                     struct gguf_file *file, struct gguf_report *report);
