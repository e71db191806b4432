/* Sorts the tensors of a model by name or by place. */
#pragma once

#include "gguf/model.h"

/*
 * Return pointers to the model's tensors, sorted by name, or NULL if out of memory. Tensors of one
 * name are in file order. The caller frees the pointers.
 */
const struct gguf_tensor **gguf_tensors_by_name(const struct gguf_model *model);

/*
 * The same, sorted by the file and the start of the data. At one offset, tensors of unknown type
 * come last: their extent is what follows.
 */
const struct gguf_tensor **gguf_tensors_by_offset(const struct gguf_model *model);

/* Return a tensor of that name among `n_tensors` ones sorted by name, or NULL. */
const struct gguf_tensor *gguf_find_tensor(const struct gguf_tensor *const *by_name,
                                           uint64_t n_tensors, struct gguf_string name);
