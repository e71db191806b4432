/* The placeholders of path templates, and what they stand for. */
#pragma once

#include "fs/tree/core/paths.h"
#include "gguf/model.h"

/* The folder of a tensor, given in its info. */
#define FS_TENSOR_FOLDER "tensors/<tensor>"

enum { FS_N_PLACEHOLDERS = 10 };
extern const struct fs_placeholder fs_placeholders[FS_N_PLACEHOLDERS];

/* All kinds of subjects, NULL-terminated; nodes are added in this order. */
extern const struct fs_subjects *const fs_subjects[];
