/* The pieces of which a GGUF file of version 3 in little-endian order is made. */
#ifndef GGUFS_FS_GGUF_BYTES_H
#define GGUFS_FS_GGUF_BYTES_H

#include "fs/tree/json.h"
#include "gguf/model.h"

/* The most that fs_gguf_number() and fs_gguf_scalar() write. */
#define FS_GGUF_NUMBER_BYTES 8u

/* The following write to the end of `text`, which must have the room. */

/* The low `width_bytes` bytes of a number. */
void fs_gguf_number(struct fs_text *text, uint64_t number, unsigned width_bytes);

void fs_gguf_bytes(struct fs_text *text, const void *bytes, size_t n_bytes);

/* A length and the bytes. */
void fs_gguf_string(struct fs_text *text, struct gguf_string string);

/* A value that is neither a string nor an array. */
void fs_gguf_scalar(struct fs_text *text, const struct gguf_value *value);

#endif
