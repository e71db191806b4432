/*
 * Tensors in files from before GGUF. Instead of a tensor table, the rest of the file has for each
 * tensor
 *
 *   u32 n_dims, u32 length of the name, u32 type, u32 ne[n_dims], name, padding, data
 *
 * so a reader must know the size of every type.
 */
#pragma once

#include "gguf/cursor.h"
#include "gguf/legacy/families.h"
#include "gguf/model.h"

struct gguf_old_layout {
    uint64_t alignment_bytes; /* of the data, from the start of the file */
    /* Return the type for an id in the file, or NULL if the id is unknown. */
    const struct dequant_type *(*type_of)(const void *user, uint32_t id);
    const void *user;
};

/*
 * Read all tensors from the cursor to the end of the file into the model. Returns 0, or a negative
 * errno with the reason in the cursor's report; the model then has the tensors before the one that
 * failed.
 */
int gguf_old_tensors_read(struct gguf_cursor *cursor, const struct gguf_old_layout *layout,
                          struct gguf_model *model);

/* Remove all tensors from the model, and cut the header's copy before the first one. */
void gguf_old_tensors_drop(struct gguf_model *model);

/*
 * Set the GGUF name of each tensor, and check that a model with tensors has all of them: this is
 * the only sign of a file that was cut between two tensors. Numbers of layers are as for
 * gguf_matches_rule(), `names` as for gguf_name_rules_read(). Returns 0, or a negative errno with
 * the reason in `report`.
 */
int gguf_old_tensors_name(struct gguf_model *model, const char *names, uint32_t n_layers,
                          uint32_t n_more, struct gguf_report *report);
