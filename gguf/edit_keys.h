/* The types that keys of the GGUF specification may have, for edits. */
#ifndef GGUFS_GGUF_EDIT_KEYS_H
#define GGUFS_GGUF_EDIT_KEYS_H

#include "gguf/model.h"

/*
 * Check the type of a value that an edit gives to a key of `model`. A standard key may have the
 * type of the specification, the one that llama.cpp reads, or the one it has in the file; other
 * keys any type. Returns 0, or -EINVAL with the reason in `report`.
 */
int gguf_edit_check_type(const struct gguf_model *model, struct gguf_string key,
                         const struct gguf_value *value, struct gguf_report *report);

#endif
