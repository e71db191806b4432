/*
 * The table of checkpoints: one row for each architecture that transformers has too. A row says
 * which class loads the checkpoint, what its tensors are called and what the GGUF converter
 * (llama.cpp, conversion/) did to each, and which members config.json needs.
 *
 * Names and meanings on the side of GGUF follow llama.cpp's gguf-py/gguf/tensor_mapping.py and
 * conversion/; those on the other side follow the models and configurations of transformers 5.
 */
#ifndef GGUFS_FS_HF_ROWS_H
#define GGUFS_FS_HF_ROWS_H

#include "fs/tree/hf/hf_config.h"
#include "fs/tree/hf/hf_model.h"
#include "gguf/models/namings.h"

#include <stdbool.h>

#define FS_HF_MAX_TABLES 10
#define FS_HF_MAX_NEEDS  12

struct fs_hf_row {
    const char *architecture; /* general.architecture */
    /* Return true if the row is for this model; NULL: for all of the architecture. */
    bool (*applies)(const struct fs_hf_model *hf);
    const char *class_name; /* of transformers */
    const char *model_type; /* of config.json */
    bool has_layout; /* tensor_data_layout = "reference" means: rows of q, k, v are in this order */
    bool shares_kv;  /* a layer may have no tensors of keys or values of its own */
    /*
     * Patterns of tensors that the class always has, beside what the lists of gguf/models/ require.
     * A layer needs them if it has the part, for example experts.
     */
    const char *needs[FS_HF_MAX_NEEDS];
    const struct gguf_naming *naming;
    const struct fs_hf_entry *config[FS_HF_MAX_TABLES];
};

/* Members: the value of a key, with JSON for models without it; JSON; what tensors there are. */
#define KEY(name_, key_)                                                                           \
    {                                                                                              \
        .name = (name_), .key = (key_)                                                             \
    }
#define KEY_OR(name_, key_, json_)                                                                 \
    {                                                                                              \
        .name = (name_), .key = (key_), .json = (json_)                                            \
    }
#define JSON(name_, json_)                                                                         \
    {                                                                                              \
        .name = (name_), .json = (json_)                                                           \
    }
#define HAS(name_, pattern)                                                                        \
    {                                                                                              \
        .name = (name_), .has = (pattern)                                                          \
    }
#define LACKS(name_, pattern)                                                                      \
    {                                                                                              \
        .name = (name_), .lacks = (pattern)                                                        \
    }
#define CALL(name_, function)                                                                      \
    {                                                                                              \
        .name = (name_), .write = (function)                                                       \
    }
#define CALL_WITH(name_, function, number_)                                                        \
    {                                                                                              \
        .name = (name_), .write = (function), .number = (number_)                                  \
    }
#define COUNT_OF(name_, key_, function)                                                            \
    {                                                                                              \
        .name = (name_), .key = (key_), .write = (function)                                        \
    }
#define END_OF_CONFIG                                                                              \
    {                                                                                              \
        .name = NULL                                                                               \
    }

/* Return row `index` of all, or NULL after the last. */
const struct fs_hf_row *fs_hf_row_at(size_t index);

/* Return the row for the model, or NULL. */
const struct fs_hf_row *fs_hf_row_of(const struct fs_hf_model *hf);

/* The tables of rows; the last of each has no architecture. */
extern const struct fs_hf_row fs_hf_rows_dense[];
extern const struct fs_hf_row fs_hf_rows_gemma[];
extern const struct fs_hf_row fs_hf_rows_gpt[];
extern const struct fs_hf_row fs_hf_rows_experts[];
extern const struct fs_hf_row fs_hf_rows_latent[];
extern const struct fs_hf_row fs_hf_rows_recurrent[];
extern const struct fs_hf_row fs_hf_rows_hybrid[];

/* Members that several rows share, in hf_shared.c. */

extern const struct fs_hf_entry fs_hf_sizes[];
extern const struct fs_hf_entry fs_hf_moe_sizes[];
extern const struct fs_hf_entry fs_hf_hybrid_sizes[];
extern const struct fs_hf_entry fs_hf_head_dim_config[];
extern const struct fs_hf_entry fs_hf_rms_norm[];      /* rms_norm_eps */
extern const struct fs_hf_entry fs_hf_layer_norm[];    /* layer_norm_eps */
extern const struct fs_hf_entry fs_hf_routed_config[]; /* n_routed_experts … */
extern const struct fs_hf_entry fs_hf_attention_bias[];
extern const struct fs_hf_entry fs_hf_silu[];
extern const struct fs_hf_entry fs_hf_rope[];
extern const struct fs_hf_entry fs_hf_partial_rope[];

#endif
