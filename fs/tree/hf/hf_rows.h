/*
 * The table of checkpoints: one row for each architecture that transformers has too. A row says
 * which class loads the checkpoint, what its tensors are called and what the GGUF converter
 * (llama.cpp, conversion/) did to each, and which members config.json needs.
 *
 * Names and meanings on the side of GGUF follow llama.cpp's gguf-py/gguf/tensor_mapping.py and
 * conversion/; those on the other side follow the models and configurations of transformers 5.
 */
#pragma once

#include "fs/tree/hf/hf_model.h"
#include "gguf/models/namings.h"

/* Rows of the table begin with the first five members, by position. */
struct fs_hf_row {
    const char *architecture; /* general.architecture */
    const char *class_name;   /* of transformers */
    const char *model_type;   /* of config.json */
    const char *naming;       /* of gguf/models/namings.h */
    const char *config;       /* its members: words, see hf_config.h */
    /* Return true if the row is for this model; NULL: for all of the architecture. */
    bool (*applies)(const struct fs_hf_model *hf);
    bool has_layout; /* tensor_data_layout = "reference" means: rows of q, k, v are in this order */
    bool shares_kv;  /* a layer may have no tensors of keys or values of its own */
    /*
     * A tensor that the class always has, beside what the lists of gguf/models/ require. A layer
     * needs it if it has the part: experts or attention.
     */
    const char *needs;
};

/* Return row `index` of all, or NULL after the last. */
const struct fs_hf_row *fs_hf_row_at(size_t index);

/* Return the row for the model, or NULL. */
const struct fs_hf_row *fs_hf_row_of(const struct fs_hf_model *hf);
