/* The elements of a GGUF file of version 3 in little-endian order. */
#pragma once

#include "fs/tree/output/sink.h"
#include "gguf/values.h"

#include <stdint.h>

/* Write the low `width_bytes` bytes of a number. */
void fs_gguf_number(struct fs_sink *sink, uint64_t number, unsigned width_bytes);

/* Write a string: its length and its bytes. */
void fs_gguf_string(struct fs_sink *sink, struct gguf_string string);

/* Write a value that is neither a string nor an array. */
void fs_gguf_scalar(struct fs_sink *sink, const struct gguf_value *value);
