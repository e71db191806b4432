/*
 * Edits of a model: steps on its tensors, see gguf/surgery.h, then keys to set and to remove. They
 * are parsed before a model is opened and applied to it right after that, before any thread reads
 * it. No file is written.
 *
 * The functions return 0 or a negative errno with the reason in `report`.
 */
#pragma once

#include "gguf/edit_values.h"
#include "gguf/model.h"
#include "gguf/surgery.h"

#include <stddef.h>

struct gguf_edit {
    struct gguf_string key; /* owned */
    struct cJSON *value;    /* owned; NULL: the key is removed */
    bool is_text;           /* `value` is a string with the text of a command line */
    /*
     * The type that the edit gives or its value implies; GGUF_N_VALUE_TYPES: none. An edit that
     * does not give all of it takes the type of a key that the model has.
     */
    struct gguf_edit_type type;
    bool is_type_given;
};

/* All zero: no edits. They apply in the order of the list. */
struct gguf_edits {
    struct gguf_edit *list;
    size_t count;
    struct gguf_surgery surgery; /* done before them */
};

/*
 * Return the value in an edit written as KEY=VALUE or KEY=TYPE:VALUE, or NULL if it has neither
 * form. *type is TYPE; empty in the form KEY=VALUE.
 */
const char *gguf_edit_find_value(const char *text, struct gguf_string *type);

/*
 * Add an edit written as KEY=TYPE:VALUE, where TYPE is u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 bool
 * str, arr with a VALUE in JSON, or arr[TYPE] with the type of its elements; or as KEY=VALUE, which
 * takes the type of a key that the model has.
 */
int gguf_edits_set(struct gguf_edits *edits, const char *text, struct gguf_report *report);

/* Add the removal of a key. */
int gguf_edits_unset(struct gguf_edits *edits, const char *key, struct gguf_report *report);

/*
 * Add the edits of a JSON object with a member for each key: null to remove it, a value, or
 * {"type": TYPE, "value": VALUE}; or for an option of gguf_surgery_add(), "--drop", with its value
 * or an array of values. A number without a type requires that the model has the key. `json` has
 * length_bytes bytes, followed by a NUL; `place` is its name in errors.
 */
int gguf_edits_add_json(struct gguf_edits *edits, const char *json, size_t length_bytes,
                        const char *place, struct gguf_report *report);

/*
 * Apply the edits in their order. Steps on tensors replace *model, see gguf_surgery_apply(). The
 * model keeps no pointer to them. It is an error to remove a
 * key that is not there, to give a key another type than it has, to add one without a type, or to
 * make a model that gguf_open() would refuse.
 */
int gguf_edits_apply(const struct gguf_edits *edits, struct gguf_model **model,
                     struct gguf_report *report);

void gguf_edits_free(struct gguf_edits *edits);
