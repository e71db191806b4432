/*
 * JSON output. Integers are exact. Floats have the shortest form that reads back the same, with a
 * '.' or an 'e' so that they stay floats; NaN and infinities are null. Bytes that are not UTF-8
 * become the lone surrogates \udc80 to \udcff, as in Python's surrogateescape.
 */
#pragma once

#include "fs/tree/output/sink.h"
#include "gguf/support/strings.h"
#include "gguf/values.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Write a number or a bool. */
void fs_json_scalar(struct fs_sink *sink, const struct gguf_value *value);

/* Write the inside of a string, without its quotes. */
void fs_json_characters(struct fs_sink *sink, struct gguf_string string);

/* Write a whole string in quotes. */
void fs_json_string(struct fs_sink *sink, struct gguf_string string);

/* The same of a text that ends with a NUL; NULL gives null. */
void fs_json_text(struct fs_sink *sink, const char *text);

/* Write a text of digits: as a number if it can be one, else in quotes, as "007" and others. */
void fs_json_digits(struct fs_sink *sink, struct gguf_string text);

/* Write an array of n integers. */
void fs_json_integers(struct fs_sink *sink, const uint64_t *numbers, size_t n);

/* Write the name of an object's member and a colon, after a comma unless `is_first`. */
void fs_json_member(struct fs_sink *sink, const char *name, bool is_first);

/* Begin an object with a member that is a text or NULL. */
void fs_json_begin(struct fs_sink *sink, const char *name, const char *text);

/* Write a member that is a text or NULL, or an integer, after a comma. */
void fs_json_text_member(struct fs_sink *sink, const char *name, const char *text);
void fs_json_count(struct fs_sink *sink, const char *name, uint64_t count);

/* The same, or null if it is not known. */
void fs_json_count_if(struct fs_sink *sink, const char *name, bool is_known, uint64_t count);
