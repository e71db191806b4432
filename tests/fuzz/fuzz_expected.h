/* The expected contents of a tensor's files, made without fs/. */
#pragma once

#include "fs/tree/core/nodes.h"
#include "gguf/model.h"

/* The bytes of the tensor, and its values as float32. The caller frees them. */
char *fuzz_data_of(const struct gguf_model *model, const struct gguf_tensor *tensor);
char *fuzz_values_of(const struct gguf_model *model, const struct gguf_tensor *tensor);

/* Return the values as data of F32 or of a type with an encoder. The caller frees them. */
char *fuzz_encoded_of(const struct gguf_model *model, const struct gguf_tensor *tensor,
                      const struct dequant_type *type);

/*
 * Return true if elements of a tensor of model.gguf, `other` in `copy`, from `first` on, are those
 * of a stored tensor.
 */
bool fuzz_is_same_data(const struct gguf_model *model, const struct gguf_tensor *stored,
                       const struct gguf_model *copy, const struct gguf_tensor *other,
                       uint64_t first);

/*
 * Return the expected end of a file of elements and its size; NULL for any other file. The caller
 * frees it.
 */
char *fuzz_expected_of(const struct gguf_model *model, const struct fs_node *node, size_t *n_bytes);

/* Check the length and the JSON of the header of a safetensors file. */
void fuzz_check_safetensors(const char *bytes, size_t size);
