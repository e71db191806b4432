/* The values of edits: text and JSON to the values of a model. */
#ifndef GGUFS_GGUF_EDIT_VALUES_H
#define GGUFS_GGUF_EDIT_VALUES_H

#include "gguf/edits.h"

struct cJSON;

/*
 * Sets the edit's value from `text`, of the type that is named "u32" or "arr[str]". Returns 0, or a
 * negative errno with the reason in `report`.
 */
int gguf_edit_value_from_text(struct gguf_edit *edit, struct gguf_string type, const char *text,
                              struct gguf_report *report);

/*
 * The same from JSON; without a type (NULL data), which numbers need, it is that of the JSON.
 * Integers from 2^53 on, which JSON rounds, are taken as strings only.
 */
int gguf_edit_value_from_json(struct gguf_edit *edit, struct gguf_string type,
                              const struct cJSON *json, struct gguf_report *report);

/*
 * Parses JSON of length_bytes bytes with a NUL behind them. On success *json is to be freed with
 * cJSON_Delete(). `place` names it in errors.
 */
int gguf_edit_parse_json(const char *text, size_t length_bytes, const char *place,
                         struct cJSON **json, struct gguf_report *report);

#endif
