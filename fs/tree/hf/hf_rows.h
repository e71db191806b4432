/*
 * The table of checkpoints: one row for each architecture that transformers has too. A row says
 * which class loads the checkpoint, what its tensors are called and what the GGUF converter
 * (llama.cpp, conversion/) did to each, and which members config.json needs.
 *
 * Names and meanings on the side of GGUF follow llama.cpp's gguf-py/gguf/tensor_mapping.py and
 * conversion/; those on the other side follow the models and configurations of transformers 5.
 */
#pragma once

#include "fs/tree/hf/hf_config.h"
#include "fs/tree/hf/hf_model.h"
#include "gguf/models/namings.h"

#include <stdbool.h>

/* Rows of the tables begin with the first four members, by position. */
struct fs_hf_row {
    const char *architecture; /* general.architecture */
    const char *class_name;   /* of transformers */
    const char *model_type;   /* of config.json */
    const char *naming;       /* of gguf/models/namings.h */
    /* Return true if the row is for this model; NULL: for all of the architecture. */
    bool (*applies)(const struct fs_hf_model *hf);
    bool has_layout; /* tensor_data_layout = "reference" means: rows of q, k, v are in this order */
    bool shares_kv;  /* a layer may have no tensors of keys or values of its own */
    /*
     * A tensor that the class always has, beside what the lists of gguf/models/ require. A layer
     * needs it if it has the part: experts or attention.
     */
    const char *needs;
    const struct fs_hf_entry *config; /* the last one has no name */
};

/* Members: the value of a key, with JSON for models without it; JSON; what tensors there are. */
#define MEMBER(...)                                                                                \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define KEY(name_, key_)           MEMBER(.name = (name_), .key = (key_))
#define KEY_OR(name_, key_, json_) MEMBER(.name = (name_), .key = (key_), .json = (json_))
#define JSON(name_, json_)         MEMBER(.name = (name_), .json = (json_))
#define HAS(name_, pattern)        MEMBER(.name = (name_), .has = (pattern))
#define HAS_BIASES(name_, pattern, biases_)                                                        \
    MEMBER(.name = (name_), .has = (pattern), .biases = (biases_))
#define LACKS(name_, pattern)           MEMBER(.name = (name_), .lacks = (pattern))
#define CALL(name_, function)           MEMBER(.name = (name_), .write = (function))
#define CALL_WITH(name_, function, n)   MEMBER(.name = (name_), .write = (function), .number = (n))
#define COUNT_OF(name_, key_, function) MEMBER(.name = (name_), .key = (key_), .write = (function))
/* Kinds of layers: a pattern and the kind of layers that have the tensor, …, the kind of others. */
#define KINDS(name_, ...) MEMBER(.name = (name_), .kinds = (const char *const[]){__VA_ARGS__, NULL})
#define TABLE(table_)     MEMBER(.name = "", .table = (table_)) /* all its members */
#define END_OF_CONFIG     MEMBER(.name = NULL)

/* The members of a row. */
#define CONFIG(...) ((const struct fs_hf_entry[]){__VA_ARGS__, END_OF_CONFIG})

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

/* Members that several rows share. The tables are in hf_shared.c. */

#define OF_ATTENTION "attn_q attn_k attn_v attn_output"

#define COMMON_SIZES   TABLE(fs_hf_common_sizes)
#define SIZES          TABLE(fs_hf_sizes)
#define HEAD_DIM       CALL("head_dim", fs_hf_write_head_dim)
#define RMS_NORM       KEY("rms_norm_eps", "attention.layer_norm_rms_epsilon")
#define LAYER_NORM     KEY("layer_norm_eps", "attention.layer_norm_epsilon")
#define ATTENTION_BIAS HAS_BIASES("attention_bias", "blk.%.attn_q.bias", OF_ATTENTION)
#define SILU           JSON("hidden_act", "\"silu\"")
#define ROPE           CALL("rope", fs_hf_write_rope)
#define PARTIAL_ROPE   CALL("partial_rotary_factor", fs_hf_write_rope)
#define WINDOW         CALL("sliding_window", fs_hf_write_sliding_window)
#define MLP_BIAS       HAS_BIASES("mlp_bias", "blk.%.ffn_up.bias", "ffn_gate ffn_up ffn_down")
#define BY_SOFTMAX     CALL_WITH("expert_gating_func", fs_hf_demand_gating, 1)
#define BY_SIGMOID     CALL_WITH("expert_gating_func", fs_hf_demand_gating, 2)
#define MLP_KINDS      KINDS("mlp_layer_types", "blk.%.ffn_gate_inp.weight", "sparse", "dense")

#define NUM_EXPERTS                                                                                \
    KEY("num_experts", "expert_count"), KEY("num_experts_per_tok", "expert_used_count")
#define NUM_LOCAL_EXPERTS                                                                          \
    KEY("num_local_experts", "expert_count"), KEY("num_experts_per_tok", "expert_used_count")
#define EXPERT_WIDTH KEY("moe_intermediate_size", "expert_feed_forward_length")
#define EXPERT_GROUPS                                                                              \
    KEY_OR("n_group", "expert_group_count", "1"),                                                  \
        KEY_OR("topk_group", "expert_group_used_count", "1")
#define GRANITE_SCALES                                                                             \
    KEY_OR("embedding_multiplier", "embedding_scale", "1.0"),                                      \
        KEY_OR("residual_multiplier", "residual_scale", "1.0"),                                    \
        CALL("attention_multiplier", fs_hf_write_attention_scale)

extern const struct fs_hf_entry fs_hf_common_sizes[];
extern const struct fs_hf_entry fs_hf_sizes[];
extern const struct fs_hf_entry fs_hf_moe_sizes[];
extern const struct fs_hf_entry fs_hf_hybrid_sizes[];
extern const struct fs_hf_entry fs_hf_routed_config[]; /* n_routed_experts … */
