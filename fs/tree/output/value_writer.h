/* Writes metadata values: as JSON text, or as bytes of a GGUF file. */
#pragma once

#include "fs/tree/output/sink.h"
#include "gguf/values.h"

/* Write a value of any type as JSON. */
void fs_json_value(struct fs_sink *sink, const struct gguf_value *value);

/*
 * Write a value of any type, without its key and type, as GGUF of version 3 in little-endian order,
 * regardless of the encoding of the source.
 */
void fs_gguf_value(struct fs_sink *sink, const struct gguf_value *value);
