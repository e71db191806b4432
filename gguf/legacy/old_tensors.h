/*
 * Tensors in files from before GGUF. There is no table of them: up to the end of the file come, for
 * each,
 *
 *   u32 n_dims, u32 length of the name, u32 type, u32 ne[n_dims], name, padding, data
 *
 * so that a reader must know how long the data of every type are.
 */
#ifndef GGUFS_GGUF_OLD_TENSORS_H
#define GGUFS_GGUF_OLD_TENSORS_H

#include "gguf/cursor.h"
#include "gguf/legacy/families.h"
#include "gguf/model.h"

struct gguf_old_layout {
    uint64_t alignment_bytes; /* of the data, from the start of the file */
    /* The type of an id in the file, or NULL if the files have none such. */
    const struct dequant_type *(*type_of)(const void *user, uint32_t id);
    const void *user;
};

/*
 * Reads all tensors from the cursor to the end of the file into the model. Returns 0, or a negative
 * errno with the reason in `report`; the model then has those before the one that failed.
 */
int gguf_old_tensors_read(struct gguf_cursor *cursor, const struct gguf_old_layout *layout,
                          struct gguf_model *model, struct gguf_report *report);

/* Take all tensors out of the model again, and rewind the header to what is before the first. */
void gguf_old_tensors_drop(struct gguf_model *model);

/*
 * Gives each tensor the name that it has today, and checks that a model that has tensors has all of
 * them: a file that was cut between two tensors is nothing else than shorter. Numbers of layers as
 * for gguf_rule_of(). Returns 0, or a negative errno with the reason in `report`.
 */
int gguf_old_tensors_name(struct gguf_model *model, const struct gguf_name_rule *rules,
                          uint32_t n_layers, uint32_t n_more, struct gguf_report *report);

/* The tensor with that name of today, or NULL. */
const struct gguf_tensor *gguf_tensor_named_today(const struct gguf_model *model, const char *name);

#endif
