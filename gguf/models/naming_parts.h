/* Names and macros that the tables of namings share. Only namings_*.c include it. */
#pragma once

#include "gguf/models/namings.h"

/* clang-format off */
#define NAME(name_, other_)               {.name = (name_), .other = (other_)}
#define ORDERED(name_, other_, order_)    {.name = (name_), .other = (other_), .order = (order_)}
#define PLUS_ONE(name_, other_)           {.name = (name_), .other = (other_), .change = GGUF_PLUS_ONE}
#define MINUS_EXP(name_, other_, order_)  {.name = (name_), .other = (other_), .order = (order_), .change = GGUF_MINUS_EXP}
#define JOINED(name_, with_, other_, order_) {.name = (name_), .other = (other_), .order = (order_), .with = (with_)}
/* A number from a key, as a tensor of one dimension with one element, or without dimensions. */
#define ELEMENT(key_, other_)             {.name = (key_), .other = (other_), .order = GGUF_FLAT, .is_key = true}
#define SCALAR(key_, other_)              {.name = (key_), .other = (other_), .is_key = true}
/* A tensor whose content another tensor or config.json has. */
#define ELSEWHERE(name_)                  {.name = (name_)}
/* The three products of a gated feed-forward, of experts or a shared one. */
#define GATED_NAMES(suffix, other_) \
    NAME("blk.%.ffn_gate" suffix, other_ "gate_proj"), NAME("blk.%.ffn_up" suffix, other_ "up_proj"), \
    NAME("blk.%.ffn_down" suffix, other_ "down_proj")
#define END_OF_NAMES                      {.name = NULL}
/* A table of one name. */
#define ONE_NAME(name_, other_)           (const struct gguf_rename[]){NAME(name_, other_), END_OF_NAMES}
/* clang-format on */

extern const struct gguf_rename gguf_names_embedding[];     /* model.embed_tokens, norm, lm_head */
extern const struct gguf_rename gguf_names_norm[];          /* input and post-attention layernorm */
extern const struct gguf_rename gguf_names_attention[];     /* self_attn.q_proj … */
extern const struct gguf_rename gguf_names_rotated[];       /* q_proj, k_proj of reordered rows */
extern const struct gguf_rename gguf_names_mlp[];           /* mlp.gate_proj … */
extern const struct gguf_rename gguf_names_experts[];       /* mlp.experts.#.gate_proj … */
extern const struct gguf_rename gguf_names_shared_expert[]; /* mlp.shared_expert.gate_proj … */
extern const struct gguf_rename gguf_names_shared_experts[]; /* mlp.shared_experts.gate_proj … */
extern const struct gguf_rename gguf_names_block_sparse[];   /* block_sparse_moe.experts.#.w1 … */
extern const struct gguf_rename gguf_names_choice_bias[];    /* mlp.gate.e_score_correction_bias */
extern const struct gguf_rename gguf_names_granite_experts[];

/* Rules after a model's own names; rotated rows come before. */
#define DENSE_RULES  gguf_names_embedding, gguf_names_norm, gguf_names_attention, gguf_names_mlp
#define EXPERT_RULES DENSE_RULES, gguf_names_experts
