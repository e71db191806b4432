/* Namings of hybrids with linear attention, short convolutions or windows. */
#include "gguf/models/naming_parts.h"

/* Norms have 1 added, except the norm of linear attention. */
static const struct gguf_rename norm_names[] = {
    PLUS_ONE("output_norm", "model.norm"),
    PLUS_ONE("blk.%.attn_norm", "model.layers.%.input_layernorm"),
    PLUS_ONE("blk.%.post_attention_norm", "model.layers.%.post_attention_layernorm"),
    PLUS_ONE("blk.%.attn_q_norm", "model.layers.%.self_attn.q_norm"),
    PLUS_ONE("blk.%.attn_k_norm", "model.layers.%.self_attn.k_norm"),
    NAME("blk.%.ssm_norm", "model.layers.%.linear_attn.norm"),
    END_OF_NAMES,
};

static const struct gguf_rename qwen3next_names[] = {
    MINUS_EXP("blk.%.ssm_a", "model.layers.%.linear_attn.A_log", GGUF_SAME_ORDER),
    NAME("blk.%.ssm_dt.bias", "model.layers.%.linear_attn.dt_bias"),
    ORDERED("blk.%.ssm_conv1d.weight", "model.layers.%.linear_attn.conv1d.weight", GGUF_NO_MIDDLE),
    NAME("blk.%.ssm_ba", "model.layers.%.linear_attn.in_proj_ba"),
    NAME("blk.%.ssm_out", "model.layers.%.linear_attn.out_proj"),
    JOINED("blk.%.attn_qkv", "blk.%.attn_gate", "model.layers.%.linear_attn.in_proj_qkvz",
           GGUF_QKVZ_BY_HEAD),
    ELSEWHERE("blk.%.attn_gate"),
    END_OF_NAMES,
};

static const struct gguf_rename qwen35_names[] = {
    MINUS_EXP("blk.%.ssm_a", "model.layers.%.linear_attn.A_log", GGUF_VALUE_ROWS),
    ORDERED("blk.%.ssm_dt.bias", "model.layers.%.linear_attn.dt_bias", GGUF_VALUE_ROWS),
    ORDERED("blk.%.ssm_conv1d.weight", "model.layers.%.linear_attn.conv1d.weight",
            GGUF_VALUE_ROWS_OF_CONV),
    ORDERED("blk.%.ssm_alpha", "model.layers.%.linear_attn.in_proj_a", GGUF_VALUE_ROWS),
    ORDERED("blk.%.ssm_beta", "model.layers.%.linear_attn.in_proj_b", GGUF_VALUE_ROWS),
    ORDERED("blk.%.attn_qkv", "model.layers.%.linear_attn.in_proj_qkv", GGUF_VALUE_ROWS_AFTER_QK),
    ORDERED("blk.%.attn_gate", "model.layers.%.linear_attn.in_proj_z", GGUF_VALUE_ROWS),
    ORDERED("blk.%.ssm_out", "model.layers.%.linear_attn.out_proj", GGUF_VALUE_COLUMNS),
    END_OF_NAMES,
};

static const struct gguf_rename lfm2_names[] = {
    NAME("token_embd_norm", "model.embedding_norm"),
    NAME("output_norm", "model.embedding_norm"),
    NAME("blk.%.attn_norm", "model.layers.%.operator_norm"),
    NAME("blk.%.ffn_norm", "model.layers.%.ffn_norm"),
    NAME("blk.%.attn_output", "model.layers.%.self_attn.out_proj"),
    NAME("blk.%.attn_q_norm", "model.layers.%.self_attn.q_layernorm"),
    NAME("blk.%.attn_k_norm", "model.layers.%.self_attn.k_layernorm"),
    ORDERED("blk.%.shortconv.conv.weight", "model.layers.%.conv.conv.weight", GGUF_NO_MIDDLE),
    NAME("blk.%.shortconv.conv.bias", "model.layers.%.conv.conv.bias"),
    NAME("blk.%.shortconv.in_proj", "model.layers.%.conv.in_proj"),
    NAME("blk.%.shortconv.out_proj", "model.layers.%.conv.out_proj"),
    NAME("blk.%.ffn_gate", "model.layers.%.feed_forward.w1"),
    NAME("blk.%.ffn_down", "model.layers.%.feed_forward.w2"),
    NAME("blk.%.ffn_up", "model.layers.%.feed_forward.w3"),
    NAME("blk.%.ffn_gate_inp", "model.layers.%.feed_forward.gate"),
    NAME("blk.%.exp_probs_b.bias", "model.layers.%.feed_forward.expert_bias"),
    NAME("blk.%.ffn_gate_exps", "model.layers.%.feed_forward.experts.#.w1"),
    NAME("blk.%.ffn_down_exps", "model.layers.%.feed_forward.experts.#.w2"),
    NAME("blk.%.ffn_up_exps", "model.layers.%.feed_forward.experts.#.w3"),
    END_OF_NAMES,
};

#define ATTENTION_RULES norm_names, gguf_names_embedding, gguf_names_attention
#define EXPERTS_RULES   gguf_names_shared_expert, gguf_names_experts

const struct gguf_naming gguf_naming_qwen3_next = {
    {qwen3next_names, ATTENTION_RULES, EXPERTS_RULES, gguf_names_mlp}};
const struct gguf_naming gguf_naming_qwen3_5 = {{qwen35_names, ATTENTION_RULES, gguf_names_mlp}};
const struct gguf_naming gguf_naming_qwen3_5_moe = {{qwen35_names, ATTENTION_RULES, EXPERTS_RULES}};
const struct gguf_naming gguf_naming_lfm2 = {
    {lfm2_names, gguf_names_embedding, gguf_names_attention}};
const struct gguf_naming gguf_naming_mimo_v2_flash = {
    {ONE_NAME("blk.%.attn_sinks.weight", "model.layers.%.self_attn.sinks"), gguf_names_choice_bias,
     gguf_names_embedding, gguf_names_norm, gguf_names_attention, gguf_names_mlp,
     gguf_names_experts}};
