/* Namings of mixtures of experts. */
#include "gguf/models/naming_parts.h"

static const struct gguf_rename gpt_oss_names[] = {
    NAME("blk.%.post_attention_norm", "model.layers.%.post_attention_layernorm"),
    NAME("blk.%.attn_sinks.weight", "model.layers.%.self_attn.sinks"),
    NAME("blk.%.ffn_gate_inp", "model.layers.%.mlp.router"),
    JOINED("blk.%.ffn_gate_exps.weight", "blk.%.ffn_up_exps.weight",
           "model.layers.%.mlp.experts.gate_up_proj", GGUF_ALTERNATING),
    JOINED("blk.%.ffn_gate_exps.bias", "blk.%.ffn_up_exps.bias",
           "model.layers.%.mlp.experts.gate_up_proj_bias", GGUF_ALTERNATING),
    ELSEWHERE("blk.%.ffn_up_exps"),
    ORDERED("blk.%.ffn_down_exps.weight", "model.layers.%.mlp.experts.down_proj", GGUF_TRANSPOSED),
    NAME("blk.%.ffn_down_exps.bias", "model.layers.%.mlp.experts.down_proj_bias"),
    END_OF_NAMES,
};

static const struct gguf_rename llama4_names[] = {
    GATED_NAMES("", "model.layers.%.feed_forward."),
    NAME("blk.%.ffn_gate_inp", "model.layers.%.feed_forward.router"),
    GATED_NAMES("_shexp", "model.layers.%.feed_forward.shared_expert."),
    JOINED("blk.%.ffn_gate_exps.weight", "blk.%.ffn_up_exps.weight",
           "model.layers.%.feed_forward.experts.gate_up_proj", GGUF_BOTH_COLUMNS),
    ELSEWHERE("blk.%.ffn_up_exps"),
    ORDERED("blk.%.ffn_down_exps.weight", "model.layers.%.feed_forward.experts.down_proj",
            GGUF_TRANSPOSED),
    END_OF_NAMES,
};

static const struct gguf_rename hunyuan_moe_names[] = {
    NAME("blk.%.attn_q_norm", "model.layers.%.self_attn.query_layernorm"),
    NAME("blk.%.attn_k_norm", "model.layers.%.self_attn.key_layernorm"),
    NAME("blk.%.ffn_gate_inp", "model.layers.%.mlp.gate.wg"),
    GATED_NAMES("_shexp", "model.layers.%.mlp.shared_mlp."),
    END_OF_NAMES,
};

static const struct gguf_rename ernie_names[] = {
    ORDERED("blk.%.exp_probs_b.bias", "model.layers.%.mlp.moe_statics.e_score_correction_bias",
            GGUF_ONE_ROW),
    END_OF_NAMES,
};

static const struct gguf_rename hy_v3_names[] = {
    NAME("blk.%.exp_probs_b", "model.layers.%.mlp.expert_bias"),
    NAME("blk.%.ffn_gate_inp", "model.layers.%.mlp.router.gate"),
    GATED_NAMES("_shexp", "model.layers.%.mlp.shared_mlp."),
    END_OF_NAMES,
};

static const struct gguf_rename afmoe_names[] = {
    NAME("blk.%.post_attention_norm", "model.layers.%.post_attention_layernorm"),
    NAME("blk.%.ffn_norm", "model.layers.%.pre_mlp_layernorm"),
    NAME("blk.%.post_ffw_norm", "model.layers.%.post_mlp_layernorm"),
    NAME("blk.%.attn_gate", "model.layers.%.self_attn.gate_proj"),
    NAME("blk.%.ffn_gate_inp", "model.layers.%.mlp.router.gate"),
    NAME("blk.%.exp_probs_b.bias", "model.layers.%.mlp.expert_bias"),
    END_OF_NAMES,
};

static const struct gguf_rename laguna_names[] = {
    NAME("blk.%.attn_gate", "model.layers.%.self_attn.g_proj"),
    NAME("blk.%.exp_probs_b.bias", "model.layers.%.mlp.experts.e_score_correction_bias"),
    END_OF_NAMES,
};

const struct gguf_naming gguf_naming_qwen2_moe = {{gguf_names_shared_expert, EXPERT_RULES}};
const struct gguf_naming gguf_naming_qwen3_moe = {{EXPERT_RULES}};
const struct gguf_naming gguf_naming_granitemoeshared = {{gguf_names_granite_experts,
                                                          gguf_names_rotated, gguf_names_embedding,
                                                          gguf_names_norm, gguf_names_attention}};
const struct gguf_naming gguf_naming_gpt_oss = {{gpt_oss_names, EXPERT_RULES}};
const struct gguf_naming gguf_naming_llama4 = {{llama4_names, EXPERT_RULES}};
const struct gguf_naming gguf_naming_glm4_moe = {
    {ONE_NAME("blk.%.post_attention_norm", "model.layers.%.post_attention_layernorm"),
     gguf_names_choice_bias, gguf_names_shared_experts, EXPERT_RULES}};
const struct gguf_naming gguf_naming_dots1 = {
    {gguf_names_choice_bias, gguf_names_shared_experts, EXPERT_RULES}};
const struct gguf_naming gguf_naming_exaone_moe = {
    {ONE_NAME("blk.%.exp_probs_b.bias", "model.layers.%.mlp.e_score_correction_bias"),
     gguf_names_shared_experts, EXPERT_RULES}};
const struct gguf_naming gguf_naming_ernie4_5_moe = {
    {ernie_names, gguf_names_shared_experts, EXPERT_RULES}};
const struct gguf_naming gguf_naming_hunyuan_v1_moe = {{hunyuan_moe_names, EXPERT_RULES}};
const struct gguf_naming gguf_naming_hy_v3 = {{hy_v3_names, EXPERT_RULES}};
const struct gguf_naming gguf_naming_afmoe = {
    {afmoe_names, gguf_names_shared_experts, EXPERT_RULES}};
const struct gguf_naming gguf_naming_laguna = {
    {laguna_names, gguf_names_shared_expert, EXPERT_RULES}};
const struct gguf_naming gguf_naming_cohere2_moe = {{gguf_names_shared_experts, EXPERT_RULES}};
const struct gguf_naming gguf_naming_minimax_m2 = {{gguf_names_block_sparse, EXPERT_RULES}};
