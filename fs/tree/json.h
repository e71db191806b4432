/*
 * JSON, written to memory of a fixed size. Numbers and strings come out as the design says:
 * integers exact, floats in the shortest form that reads back the same (with a '.' or an 'e', so
 * that they stay floats), NaN and infinities as null, and bytes that are not UTF-8 as the lone
 * surrogates \udc80 to \udcff, as Python's surrogateescape has them.
 */
#ifndef GGUFS_FS_JSON_H
#define GGUFS_FS_JSON_H

#include "gguf/model.h"

#include <stdbool.h>
#include <stddef.h>

struct fs_text {
    char *data; /* not NUL-terminated */
    size_t length;
    size_t capacity;
};

/* The room that fs_json_string_part() needs for a part, and fs_json_string() for a string. */
#define FS_JSON_PART_BYTES(length_bytes)   (6 * (size_t)(length_bytes) + 8)
#define FS_JSON_STRING_BYTES(length_bytes) (FS_JSON_PART_BYTES(length_bytes) + 2)

/* The most that fs_json_scalar() writes for a number or a bool. */
#define FS_JSON_SCALAR_BYTES 40

/* The following write to the end of `text`, which must have the room. */

void fs_json_literal(struct fs_text *text, const char *literal);

/* A number or a bool. */
void fs_json_scalar(struct fs_text *text, const struct gguf_value *value);

/*
 * The inside of a string, without its quotes. Unless `is_last`, a character that the part cuts is
 * left out. Returns how many bytes of the part were written, which is above 0 if it has 4 or more.
 */
size_t fs_json_string_part(struct fs_text *text, struct gguf_string part, bool is_last);

/* A whole string in quotes. */
void fs_json_string(struct fs_text *text, struct gguf_string string);

/*
 * The info of a tensor as an object on one line. Writes as much as fits and returns 0, or -ENOSPC
 * if `text` is too small, or -ENOMEM.
 */
int fs_json_tensor_info(struct fs_text *text, const struct gguf_model *model,
                        const struct gguf_tensor *tensor);

/* The most that fs_json_tensor_info() writes. */
size_t fs_json_tensor_info_bytes(const struct gguf_model *model, const struct gguf_tensor *tensor);

#endif
