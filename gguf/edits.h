/*
 * Edits of a model's metadata: keys to set and to remove. They are parsed before a model is opened
 * and applied to it right after that, before any thread reads it. No file is written.
 *
 * The functions return 0 or a negative errno with the reason in `report`.
 */
#ifndef GGUFS_GGUF_EDITS_H
#define GGUFS_GGUF_EDITS_H

#include "gguf/model.h"

#include <stddef.h>

struct gguf_edit {
    struct gguf_string key; /* owned */
    bool is_unset;
    struct gguf_value value; /* unless is_unset; its pointers are set by gguf_edits_apply() */
    uint8_t *data;           /* bytes of a string or array as in a GGUF file; owned */
    size_t data_bytes;
};

/* All zero: no edits. They apply in the order of the list. */
struct gguf_edits {
    struct gguf_edit *list;
    size_t count;
};

/*
 * Add an edit written as KEY=TYPE:VALUE, where TYPE is u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 bool
 * str, arr with a VALUE in JSON, or arr[TYPE] with the type of its elements.
 */
int gguf_edits_set(struct gguf_edits *edits, const char *text, struct gguf_report *report);

/* Add the removal of a key. */
int gguf_edits_unset(struct gguf_edits *edits, const char *key, struct gguf_report *report);

/*
 * Add the edits of a JSON object with a member for each key: null to remove it, a string, bool or
 * array, or {"type": TYPE, "value": VALUE}. `json` has length_bytes bytes, followed by a NUL;
 * `place` is its name in errors.
 */
int gguf_edits_add_json(struct gguf_edits *edits, const char *json, size_t length_bytes,
                        const char *place, struct gguf_report *report);

/*
 * Apply the edits in their order. The model keeps no pointer to them. It is an error to remove a
 * key that is not there, to give a standard key a type it cannot have, or to make a model that
 * gguf_open() would refuse.
 */
int gguf_edits_apply(const struct gguf_edits *edits, struct gguf_model *model,
                     struct gguf_report *report);

void gguf_edits_free(struct gguf_edits *edits);

#endif
