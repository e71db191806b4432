/*
 * Edits of a model's metadata: keys to set and to remove, as a user writes them. They are parsed
 * before there is a model and applied once to one that was just opened; no file is written.
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
    struct gguf_value value; /* unless is_unset */
    uint8_t *data;           /* of a string or array; owned */
    size_t data_bytes;
};

/* All zero: none. In the order in which they take effect. */
struct gguf_edits {
    struct gguf_edit *list;
    size_t count;
};

/*
 * Adds an edit written as KEY=TYPE:VALUE, where TYPE is u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 bool
 * str, arr with a VALUE in JSON, or arr[TYPE] with the type of its elements.
 */
int gguf_edits_set(struct gguf_edits *edits, const char *text, struct gguf_report *report);

/* Adds the removal of a key. */
int gguf_edits_unset(struct gguf_edits *edits, const char *key, struct gguf_report *report);

/*
 * Adds the edits of a JSON object with a member for each key: null to remove it, a string, bool or
 * array, or {"type": TYPE, "value": VALUE}. `json` has length_bytes bytes and a NUL behind them.
 */
int gguf_edits_add_json(struct gguf_edits *edits, const char *json, size_t length_bytes,
                        struct gguf_report *report);

/*
 * Applies the edits, which the model does not need after that. What needs a key that is not there,
 * or gives a model that gguf_open() would refuse, is an error.
 */
int gguf_edits_apply(const struct gguf_edits *edits, struct gguf_model *model,
                     struct gguf_report *report);

void gguf_edits_free(struct gguf_edits *edits);

#endif
