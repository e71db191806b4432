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

#include "fs/tree/hf/hf_arrange.h"
#include "fs/tree/hf/hf_config.h"
#include "fs/tree/hf/hf_model.h"
#include "fs/tree/image.h"

#include <stdbool.h>

/*
 * A rule for tensors. The first rule of a row whose pattern a tensor's name matches applies.
 * Suffixes ".weight" and ".bias" that the patterns do not name go from one name to the other.
 */
struct fs_hf_rule {
    const char *gguf; /* pattern, see fs_hf_matches() */
    /*
     * Pattern of the name in the checkpoint. With a '#' that `gguf` does not have, the tensor is
     * split along its slowest dimension into one per expert. NULL: config.json or another rule has
     * the contents.
     */
    const char *hf;
    fs_hf_arranger *arrange; /* what the converter did is undone by this; NULL: nothing was done */
    const char *with;        /* pattern of a second tensor that goes into the same one */
    const char *unless;      /* pattern of a tensor with the same content, which is used instead */
    enum fs_map map;         /* the function of each element */
    float constant;
    bool is_key; /* `gguf` is a key with a number for each layer, each of which becomes a tensor */
};

#define FS_HF_MAX_TABLES 10
#define FS_HF_MAX_NEEDS  12

struct fs_hf_row {
    const char *architecture; /* general.architecture */
    /* Return true if the row is for this model; NULL: for all of the architecture. */
    bool (*applies)(const struct fs_hf_model *hf);
    const char *class_name; /* of transformers */
    const char *model_type; /* of config.json */
    bool has_one_block; /* a layer has attention, recurrence or a feed-forward, not two of these */
    bool shares_kv;     /* a layer may have no tensors of keys or values of its own */
    bool has_no_gate;   /* the feed-forward without experts has no ffn_gate */
    /*
     * Patterns of tensors that the class always has, beside what hf_needs.c knows. Those of
     * experts, attention and recurrence are of layers that have such.
     */
    const char *needs[FS_HF_MAX_NEEDS];
    const struct fs_hf_rule *rules[FS_HF_MAX_TABLES];
    const struct fs_hf_entry *config[FS_HF_MAX_TABLES];
};

/* Rules: the tensor as it is, rearranged, with a constant added, or together with a second one. */
#define TENSOR(gguf_, hf_)                                                                         \
    {                                                                                              \
        .gguf = (gguf_), .hf = (hf_)                                                               \
    }
#define ARRANGED(gguf_, hf_, arrange_)                                                             \
    {                                                                                              \
        .gguf = (gguf_), .hf = (hf_), .arrange = (arrange_)                                        \
    }
#define SUM(gguf_, hf_, constant_)                                                                 \
    {                                                                                              \
        .gguf = (gguf_), .hf = (hf_), .map = FS_ADD, .constant = (constant_)                       \
    }
#define LOG_OF_NEGATED(gguf_, hf_, arrange_)                                                       \
    {                                                                                              \
        .gguf = (gguf_), .hf = (hf_), .arrange = (arrange_), .map = FS_LOG_OF_NEGATED              \
    }
#define JOINED(gguf_, with_, hf_, arrange_)                                                        \
    {                                                                                              \
        .gguf = (gguf_), .hf = (hf_), .arrange = (arrange_), .with = (with_)                       \
    }
/* A number from a key, as a tensor of one dimension with one element, or without dimensions. */
#define ELEMENT(key_, hf_)                                                                         \
    {                                                                                              \
        .gguf = (key_), .hf = (hf_), .arrange = fs_hf_flat, .is_key = true                         \
    }
#define SCALAR(key_, hf_)                                                                          \
    {                                                                                              \
        .gguf = (key_), .hf = (hf_), .is_key = true                                                \
    }
/* A tensor that is in the checkpoint by another rule, or by members of config.json. */
#define ELSEWHERE(gguf_)                                                                           \
    {                                                                                              \
        .gguf = (gguf_)                                                                            \
    }
#define END_OF_RULES                                                                               \
    {                                                                                              \
        .gguf = NULL                                                                               \
    }

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

/* Return the number of rules of a row that are for tensors, and rule `index` of them. */
size_t fs_hf_n_rules(const struct fs_hf_row *row);
const struct fs_hf_rule *fs_hf_rule_at(const struct fs_hf_row *row, size_t index);

/* Find the rule for a tensor's name, and its index. Returns NULL if there is none. */
const struct fs_hf_rule *fs_hf_find_rule(const struct fs_hf_row *row, struct gguf_string name,
                                         struct fs_hf_match *match, size_t *index);

/* The tables of rows; the last of each has no architecture. */
extern const struct fs_hf_row fs_hf_rows_dense[];
extern const struct fs_hf_row fs_hf_rows_gemma[];
extern const struct fs_hf_row fs_hf_rows_gpt[];
extern const struct fs_hf_row fs_hf_rows_experts[];
extern const struct fs_hf_row fs_hf_rows_latent[];
extern const struct fs_hf_row fs_hf_rows_recurrent[];
extern const struct fs_hf_row fs_hf_rows_hybrid[];

/* Rules and members that several rows share, in hf_shared.c. */
extern const struct fs_hf_rule fs_hf_embedding_rules[];     /* model.embed_tokens, norm, lm_head */
extern const struct fs_hf_rule fs_hf_norm_rules[];          /* input and post-attention layernorm */
extern const struct fs_hf_rule fs_hf_attention_rules[];     /* self_attn.q_proj … */
extern const struct fs_hf_rule fs_hf_rotated_rules[];       /* q_proj, k_proj of reordered rows */
extern const struct fs_hf_rule fs_hf_mlp_rules[];           /* mlp.gate_proj … */
extern const struct fs_hf_rule fs_hf_experts_rules[];       /* mlp.experts.#.gate_proj … */
extern const struct fs_hf_rule fs_hf_shared_expert_rules[]; /* mlp.shared_expert.gate_proj … */
extern const struct fs_hf_rule fs_hf_shared_experts_rules[]; /* mlp.shared_experts.gate_proj … */
extern const struct fs_hf_rule fs_hf_block_sparse_rules[];   /* block_sparse_moe.experts.#.w1 … */

extern const struct fs_hf_rule fs_hf_choice_bias_rules[]; /* mlp.gate.e_score_correction_bias */
extern const struct fs_hf_rule fs_hf_granite_experts_rules[];

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
