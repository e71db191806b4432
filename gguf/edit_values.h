/* The values of edits: text and JSON to the values of a model. */
#ifndef GGUFS_GGUF_EDIT_VALUES_H
#define GGUFS_GGUF_EDIT_VALUES_H

#include "gguf/edits.h"

struct cJSON;

/*
 * Set the edit's value from `text`. `type` is a name like "u32" or "arr[str]". Returns 0, or a
 * negative errno with the reason in `report`.
 */
int gguf_edit_value_from_text(struct gguf_edit *edit, struct gguf_string type, const char *text,
                              struct gguf_report *report);

/*
 * The same from JSON. Without a type (NULL data), the type is that of the JSON; numbers need one.
 * Integers from 2^53 on, which cJSON rounds, are accepted as strings only.
 */
int gguf_edit_value_from_json(struct gguf_edit *edit, struct gguf_string type,
                              const struct cJSON *json, struct gguf_report *report);

/* The name of a type as edits write it: "u32". */
const char *gguf_edit_type_name(enum gguf_value_type type);

/*
 * Parse JSON of length_bytes bytes, followed by a NUL. On success, free *json with cJSON_Delete().
 * `place` starts the message of an error.
 */
int gguf_edit_parse_json(const char *text, size_t length_bytes, const char *place,
                         struct cJSON **json, struct gguf_report *report);

#endif
