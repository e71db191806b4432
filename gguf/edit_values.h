/* The values of edits: text and JSON to the values of a model. */
#pragma once

#include "gguf/model.h"

struct cJSON;

/*
 * A type as edits write it. The elements of an array have type `element`, at any depth; if that is
 * GGUF_N_VALUE_TYPES, the values imply it.
 */
struct gguf_edit_type {
    enum gguf_value_type type, element;
};

/* The names of all types, for messages. */
#define GGUF_EDIT_TYPES "u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 bool str arr arr[TYPE]"

/* Parse the name of a type: "u32", "arr", "arr[str]". Returns false if it is unknown. */
bool gguf_edit_read_type(struct gguf_string name, struct gguf_edit_type *type);

/* Return the type of a value. For an array of arrays, `element` is GGUF_N_VALUE_TYPES. */
struct gguf_edit_type gguf_edit_type_of(const struct gguf_value *value);

/* The name of a type as edits write it: "u32", "arr[str]". */
struct gguf_edit_type_name {
    char text[12];
};
struct gguf_edit_type_name gguf_edit_type_name(struct gguf_edit_type type);

/*
 * Make a value from JSON, with its data in memory of the model; NULL: the value is only checked.
 * Integers from 2^53 on, which cJSON rounds, are accepted as strings only. If is_text, `json` is a
 * string from a command line: the text of the value, which is JSON for an array. `key` is for
 * messages. Returns 0, or a negative errno with the reason in `report`.
 */
int gguf_edit_value_make(struct gguf_value *value, struct gguf_model *model, struct gguf_string key,
                         struct gguf_edit_type type, const struct cJSON *json, bool is_text,
                         struct gguf_report *report);

/*
 * Parse JSON of length_bytes bytes, followed by a NUL. On success, free *json with cJSON_Delete().
 * `place` starts the message of an error.
 */
int gguf_edit_parse_json(const char *text, size_t length_bytes, const char *place,
                         struct cJSON **json, struct gguf_report *report);
