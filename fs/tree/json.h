/*
 * JSON output. Integers are exact. Floats have the shortest form that reads back the same, with a
 * '.' or an 'e' so that they stay floats; NaN and infinities are null. Bytes that are not UTF-8
 * become the lone surrogates \udc80 to \udcff, as in Python's surrogateescape.
 */
#ifndef GGUFS_FS_JSON_H
#define GGUFS_FS_JSON_H

#include "fs/tree/sink.h"
#include "gguf/support/strings.h"
#include "gguf/values.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Write a number or a bool. */
void fs_json_scalar(struct fs_sink *sink, const struct gguf_value *value);

/*
 * Write the inside of a string, without its quotes. Unless `is_last`, a character that is cut off
 * at the end of the part is left out. Returns the number of bytes of the part that were written,
 * which is above 0 if it has 4 or more.
 */
size_t fs_json_string_part(struct fs_sink *sink, struct gguf_string part, bool is_last);

/* Write a whole string in quotes. */
void fs_json_string(struct fs_sink *sink, struct gguf_string string);

/* Write the name of an object's member and a colon, after a comma unless `is_first`. */
void fs_json_member(struct fs_sink *sink, const char *name, bool is_first);

#endif
