/* Namings of models with latent attention. */
#include "gguf/models/naming_parts.h"

static const struct gguf_rename latent_names[] = {
    NAME("blk.%.attn_q_a", "model.layers.%.self_attn.q_a_proj"),
    NAME("blk.%.attn_q_a_norm", "model.layers.%.self_attn.q_a_layernorm"),
    NAME("blk.%.attn_q_b", "model.layers.%.self_attn.q_b_proj"),
    NAME("blk.%.attn_kv_a_mqa", "model.layers.%.self_attn.kv_a_proj_with_mqa"),
    NAME("blk.%.attn_kv_a_norm", "model.layers.%.self_attn.kv_a_layernorm"),
    /* The converter splits kv_b; older versions also kept it whole. */
    {.name = "blk.%.attn_k_b",
     .with = "blk.%.attn_v_b",
     .other = "model.layers.%.self_attn.kv_b_proj",
     .order = GGUF_LATENT_KV,
     .unless = "blk.%.attn_kv_b"},
    NAME("blk.%.attn_kv_b", "model.layers.%.self_attn.kv_b_proj"),
    ELSEWHERE("blk.%.attn_v_b"),
    END_OF_NAMES,
};

static const struct gguf_rename indexer_names[] = {
    NAME("blk.%.indexer.k_norm", "model.layers.%.self_attn.indexer.k_norm"),
    NAME("blk.%.indexer.proj", "model.layers.%.self_attn.indexer.weights_proj"),
    NAME("blk.%.indexer.attn_k", "model.layers.%.self_attn.indexer.wk"),
    NAME("blk.%.indexer.attn_q_b", "model.layers.%.self_attn.indexer.wq_b"),
    END_OF_NAMES,
};

static const struct gguf_rename kimi_names[] = {
    MINUS_EXP("blk.%.ssm_a", "model.layers.%.self_attn.A_log", GGUF_THIRD),
    NAME("blk.%.ssm_dt.bias", "model.layers.%.self_attn.dt_bias"),
    NAME("blk.%.ssm_beta", "model.layers.%.self_attn.b_proj"),
    NAME("blk.%.ssm_f_a", "model.layers.%.self_attn.f_a_proj"),
    NAME("blk.%.ssm_f_b", "model.layers.%.self_attn.f_b_proj"),
    NAME("blk.%.ssm_g_a", "model.layers.%.self_attn.g_a_proj"),
    NAME("blk.%.ssm_g_b", "model.layers.%.self_attn.g_b_proj"),
    NAME("blk.%.ssm_norm", "model.layers.%.self_attn.o_norm"),
    ORDERED("blk.%.ssm_conv1d_q", "model.layers.%.self_attn.q_conv1d", GGUF_NO_MIDDLE),
    ORDERED("blk.%.ssm_conv1d_k", "model.layers.%.self_attn.k_conv1d", GGUF_NO_MIDDLE),
    ORDERED("blk.%.ssm_conv1d_v", "model.layers.%.self_attn.v_conv1d", GGUF_NO_MIDDLE),
    END_OF_NAMES,
};

const struct gguf_naming gguf_naming_deepseek_v3 = {
    {latent_names, gguf_names_choice_bias, gguf_names_shared_experts, EXPERT_RULES}};
const struct gguf_naming gguf_naming_deepseek_v2 = {
    {latent_names, gguf_names_shared_experts, EXPERT_RULES}};
const struct gguf_naming gguf_naming_deepseek_v32 = {
    {latent_names, indexer_names, gguf_names_choice_bias, gguf_names_shared_experts, EXPERT_RULES}};
const struct gguf_naming gguf_naming_minicpm3 = {{latent_names, EXPERT_RULES}};
const struct gguf_naming gguf_naming_kimi_linear = {
    {kimi_names, latent_names, gguf_names_choice_bias, gguf_names_shared_experts,
     gguf_names_block_sparse, gguf_names_embedding, gguf_names_norm, gguf_names_attention,
     gguf_names_mlp}};
