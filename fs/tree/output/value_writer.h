/* Writes metadata values: as JSON text, or as bytes of a GGUF file. */
#pragma once

#include "fs/tree/output/sink.h"
#include "gguf/values.h"

/* Write a value of any type as JSON. */
void fs_json_value(struct fs_sink *sink, const struct gguf_value *value);

/* Write the low `width_bytes` bytes of a number, and a string: its length and its bytes. */
void fs_gguf_number(struct fs_sink *sink, uint64_t number, unsigned width_bytes);
void fs_gguf_string(struct fs_sink *sink, struct gguf_string string);

/*
 * Write a value of any type, without its key and type, as GGUF of version 3 in little-endian order,
 * regardless of the encoding of the source.
 */
void fs_gguf_value(struct fs_sink *sink, const struct gguf_value *value);
