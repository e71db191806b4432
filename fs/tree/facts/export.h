/*
 * The types of the tensors in model.gguf and split/, and the metadata that describe them. A tensor
 * whose type is not exported unchanged gets a type that llama.cpp loads.
 */
#pragma once

#include "gguf/model.h"

#include <stdbool.h>
#include <stdint.h>

/* Choices of -o export=. */
enum fs_export_choice {
    FS_EXPORT_LOADABLE, /* the default: types that llama.cpp lacks become types that it has */
    FS_EXPORT_STORED,   /* the types of the file, except old layouts */
    FS_EXPORT_F32,      /* this type for all tensors that llama-quantize would quantize */
    FS_EXPORT_F16,
    FS_EXPORT_BF16,
    FS_EXPORT_Q8_0,
    FS_EXPORT_Q4_0,
    FS_N_EXPORTS
};

struct fs_export {
    enum fs_export_choice choice;
    bool is_changed;    /* a tensor has another type than in its file, or metadata differ */
    bool is_put_back;   /* interleaved rows of the file are de-interleaved */
    bool has_file_type; /* general.file_type has this value, unless the user set it: */
    uint32_t file_type;
    struct gguf_key added[2]; /* keys that the model lacks */
    uint64_t n_added;
};

/* Return the name of choice FS_EXPORT_STORED + index, or NULL after the last. */
const char *fs_export_choice_at(size_t index);

/* Determine what changes when a model is exported. */
void fs_export_plan(const struct gguf_model *model, enum fs_export_choice choice,
                    struct fs_export *export);

/* Return the type of a tensor in model.gguf. NULL: unknown, the bytes as they are. */
const struct dequant_type *fs_export_type(enum fs_export_choice choice,
                                          const struct gguf_tensor *tensor);

/* Return the number of its dimensions there. */
uint32_t fs_export_dims(enum fs_export_choice choice, const struct gguf_tensor *tensor);

/* Get the size of its data there, in bytes. Returns 0 or -EOVERFLOW. */
int fs_export_bytes(enum fs_export_choice choice, const struct gguf_tensor *tensor,
                    uint64_t *n_bytes);

/* Return the value that model.gguf has for a key of the model. */
struct gguf_value fs_export_value(const struct gguf_model *model, const struct fs_export *export,
                                  const struct gguf_key *key);
