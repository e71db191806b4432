/* Checkpoints of hybrids: attention and linear attention, short convolutions, or a window. */
#include "fs/tree/hf/hf_rows.h"

/* ---- Qwen3-Next and Qwen 3.5 ---- */

/* Norms have 1 added, except that of linear attention. */
static const struct fs_hf_rule norm_rules[] = {
    SUM("output_norm", "model.norm", -1),
    SUM("blk.%.attn_norm", "model.layers.%.input_layernorm", -1),
    SUM("blk.%.post_attention_norm", "model.layers.%.post_attention_layernorm", -1),
    SUM("blk.%.attn_q_norm", "model.layers.%.self_attn.q_norm", -1),
    SUM("blk.%.attn_k_norm", "model.layers.%.self_attn.k_norm", -1),
    TENSOR("blk.%.ssm_norm", "model.layers.%.linear_attn.norm"),
    END_OF_RULES,
};

static const struct fs_hf_rule qwen3next_rules[] = {
    LOG_OF_NEGATED("blk.%.ssm_a", "model.layers.%.linear_attn.A_log", fs_hf_as_stored),
    TENSOR("blk.%.ssm_dt.bias", "model.layers.%.linear_attn.dt_bias"),
    ARRANGED("blk.%.ssm_conv1d.weight", "model.layers.%.linear_attn.conv1d.weight",
             fs_hf_with_middle_axis),
    TENSOR("blk.%.ssm_ba", "model.layers.%.linear_attn.in_proj_ba"),
    TENSOR("blk.%.ssm_out", "model.layers.%.linear_attn.out_proj"),
    JOINED("blk.%.attn_qkv", "blk.%.attn_gate", "model.layers.%.linear_attn.in_proj_qkvz",
           fs_hf_qkvz_by_group),
    ELSEWHERE("blk.%.attn_gate"),
    END_OF_RULES,
};

static const struct fs_hf_rule qwen35_rules[] = {
    LOG_OF_NEGATED("blk.%.ssm_a", "model.layers.%.linear_attn.A_log", fs_hf_value_rows),
    ARRANGED("blk.%.ssm_dt.bias", "model.layers.%.linear_attn.dt_bias", fs_hf_value_rows),
    ARRANGED("blk.%.ssm_conv1d.weight", "model.layers.%.linear_attn.conv1d.weight",
             fs_hf_value_rows_of_convolution),
    ARRANGED("blk.%.ssm_alpha", "model.layers.%.linear_attn.in_proj_a", fs_hf_value_rows),
    ARRANGED("blk.%.ssm_beta", "model.layers.%.linear_attn.in_proj_b", fs_hf_value_rows),
    ARRANGED("blk.%.attn_qkv", "model.layers.%.linear_attn.in_proj_qkv", fs_hf_value_rows_of_qkv),
    ARRANGED("blk.%.attn_gate", "model.layers.%.linear_attn.in_proj_z", fs_hf_value_rows),
    ARRANGED("blk.%.ssm_out", "model.layers.%.linear_attn.out_proj", fs_hf_value_columns),
    END_OF_RULES,
};

static void write_linear_layers(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const struct fs_hf_model *hf = config->hf;
    const uint64_t n_layer = fs_hf_n_layer(hf);
    const uint64_t n_v = fs_hf_number(hf, "ssm.time_step_rank", 0);

    fs_hf_begin_array(config, entry->name);
    for (uint64_t i = 0; i < n_layer; i++)
        fs_hf_element_text(config, fs_hf_layer_has(hf, i, "blk.%.ssm_out.weight")
                                       ? "linear_attention"
                                       : "full_attention");
    fs_hf_end_array(config);
    fs_hf_member_unsigned(config, "linear_value_head_dim",
                          n_v > 0 ? fs_hf_number(hf, "ssm.inner_size", 0) / n_v : 0);
}

static const struct fs_hf_entry linear_config[] = {
    CALL("layer_types", write_linear_layers),
    KEY("linear_conv_kernel_dim", "ssm.conv_kernel"),
    KEY("linear_key_head_dim", "ssm.state_size"),
    KEY("linear_num_key_heads", "ssm.group_count"),
    KEY("linear_num_value_heads", "ssm.time_step_rank"),
    HAS("attention_bias", "blk.%.attn_q.bias"),
    END_OF_CONFIG,
};

static const struct fs_hf_entry experts_config[] = {
    KEY("num_experts", "expert_count"),
    KEY("num_experts_per_tok", "expert_used_count"),
    KEY("moe_intermediate_size", "expert_feed_forward_length"),
    KEY("shared_expert_intermediate_size", "expert_shared_feed_forward_length"),
    JSON("norm_topk_prob", "true"),
    END_OF_CONFIG,
};

/* ---- lfm2 ---- */

static const struct fs_hf_rule lfm2_rules[] = {
    TENSOR("token_embd_norm", "model.embedding_norm"),
    TENSOR("output_norm", "model.embedding_norm"),
    TENSOR("blk.%.attn_norm", "model.layers.%.operator_norm"),
    TENSOR("blk.%.ffn_norm", "model.layers.%.ffn_norm"),
    TENSOR("blk.%.attn_output", "model.layers.%.self_attn.out_proj"),
    TENSOR("blk.%.attn_q_norm", "model.layers.%.self_attn.q_layernorm"),
    TENSOR("blk.%.attn_k_norm", "model.layers.%.self_attn.k_layernorm"),
    ARRANGED("blk.%.shortconv.conv.weight", "model.layers.%.conv.conv.weight",
             fs_hf_with_middle_axis),
    TENSOR("blk.%.shortconv.conv.bias", "model.layers.%.conv.conv.bias"),
    TENSOR("blk.%.shortconv.in_proj", "model.layers.%.conv.in_proj"),
    TENSOR("blk.%.shortconv.out_proj", "model.layers.%.conv.out_proj"),
    TENSOR("blk.%.ffn_gate", "model.layers.%.feed_forward.w1"),
    TENSOR("blk.%.ffn_down", "model.layers.%.feed_forward.w2"),
    TENSOR("blk.%.ffn_up", "model.layers.%.feed_forward.w3"),
    TENSOR("blk.%.ffn_gate_inp", "model.layers.%.feed_forward.gate"),
    TENSOR("blk.%.exp_probs_b.bias", "model.layers.%.feed_forward.expert_bias"),
    TENSOR("blk.%.ffn_gate_exps", "model.layers.%.feed_forward.experts.#.w1"),
    TENSOR("blk.%.ffn_down_exps", "model.layers.%.feed_forward.experts.#.w2"),
    TENSOR("blk.%.ffn_up_exps", "model.layers.%.feed_forward.experts.#.w3"),
    END_OF_RULES,
};

static void write_lfm2_layers(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const uint64_t n_layer = fs_hf_n_layer(config->hf);

    fs_hf_begin_array(config, entry->name);
    for (uint64_t i = 0; i < n_layer; i++)
        fs_hf_element_text(config, fs_hf_layer_has(config->hf, i, "blk.%.attn_q.weight")
                                       ? "full_attention"
                                       : "conv");
    fs_hf_end_array(config);
}

static const struct fs_hf_entry lfm2_config[] = {
    KEY("norm_eps", "attention.layer_norm_rms_epsilon"),
    KEY("conv_L_cache", "shortconv.l_cache"),
    HAS("conv_bias", "blk.%.shortconv.in_proj.bias"),
    JSON("block_auto_adjust_ff_dim", "false"),
    CALL("layer_types", write_lfm2_layers),
    CALL("rope", fs_hf_write_rope),
    END_OF_CONFIG,
};

static const struct fs_hf_entry lfm2moe_config[] = {
    KEY("moe_intermediate_size", "expert_feed_forward_length"),
    KEY("num_experts", "expert_count"),
    KEY("num_experts_per_tok", "expert_used_count"),
    CALL("num_dense_layers", fs_hf_write_n_dense),
    KEY_OR("routed_scaling_factor", "expert_weights_scale", "1.0"),
    HAS("use_expert_bias", "blk.%.exp_probs_b.bias"),
    JSON("norm_topk_prob", "true"),
    END_OF_CONFIG,
};

/* ---- mimo2: attention with and without a window ---- */

static const struct fs_hf_rule mimo2_rules[] = {
    TENSOR("blk.%.attn_sinks.weight", "model.layers.%.self_attn.sinks"),
    END_OF_RULES,
};

/* Layer 0 has no window. Layers with a window have twice as many heads of keys. */
static void write_full_n_head_kv(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const struct fs_hf_model *hf = config->hf;
    const uint64_t n_layer = fs_hf_n_layer(hf), n_head_kv = fs_hf_n_head_kv(hf, 0);

    for (uint64_t i = 0; i < n_layer; i++) {
        const bool has_window = fs_hf_number_at(hf, "attention.sliding_window_pattern", i, 0) != 0;

        if (fs_hf_n_head_kv(hf, i) != n_head_kv * (has_window ? 2 : 1))
            fs_hf_problem(config, "its windowed layers do not have twice as many heads of keys");
    }
    fs_hf_member_unsigned(config, entry->name, n_head_kv);
}

static const struct fs_hf_entry mimo2_config[] = {
    KEY("hidden_size", "embedding_length"),
    KEY_OR("intermediate_size", "feed_forward_length", ""),
    CALL("num_hidden_layers", fs_hf_write_n_layer),
    KEY("num_attention_heads", "attention.head_count"),
    CALL("num_key_value_heads", write_full_n_head_kv),
    KEY("max_position_embeddings", "context_length"),
    KEY("v_head_dim", "attention.value_length"),
    KEY_OR("attention_value_scale", "attention.value_scale", "null"),
    CALL("sliding_window", fs_hf_write_sliding_window),
    CALL("layer_types", fs_hf_write_layer_types),
    CALL("mlp_layer_types", fs_hf_write_mlp_types),
    CALL("partial_rotary_factor", fs_hf_write_rope_by_type),
    KEY("n_routed_experts", "expert_count"),
    KEY("num_experts_per_tok", "expert_used_count"),
    KEY("moe_intermediate_size", "expert_feed_forward_length"),
    KEY_OR("routed_scaling_factor", "expert_weights_scale", "1.0"),
    KEY_OR("norm_topk_prob", "expert_weights_norm", "true"),
    KEY_OR("n_group", "expert_group_count", "1"),
    KEY_OR("topk_group", "expert_group_used_count", "1"),
    END_OF_CONFIG,
};

#define ATTENTION_RULES norm_rules, fs_hf_embedding_rules, fs_hf_attention_rules
#define EXPERTS_RULES   fs_hf_shared_expert_rules, fs_hf_experts_rules
#define CONFIG                                                                                     \
    fs_hf_moe_sizes, fs_hf_head_dim_config, fs_hf_rms_norm, fs_hf_silu, fs_hf_partial_rope,        \
        linear_config

const struct fs_hf_row fs_hf_rows_hybrid[] = {
    {.architecture = "qwen3next",
     .class_name = "Qwen3NextForCausalLM",
     .model_type = "qwen3_next",
     .needs = {"blk.%.attn_q_norm.weight", "blk.%.post_attention_norm.weight",
               "blk.%.ssm_norm.weight", "blk.%.ffn_gate_inp_shexp.weight"},
     .rules = {qwen3next_rules, ATTENTION_RULES, EXPERTS_RULES, fs_hf_mlp_rules},
     .config = {CONFIG, experts_config}},
    {.architecture = "qwen35",
     .class_name = "Qwen3_5ForCausalLM",
     .model_type = "qwen3_5_text",
     .needs = {"blk.%.attn_q_norm.weight", "blk.%.post_attention_norm.weight",
               "blk.%.ssm_norm.weight"},
     .rules = {qwen35_rules, ATTENTION_RULES, fs_hf_mlp_rules},
     .config = {CONFIG}},
    {.architecture = "qwen35moe",
     .class_name = "Qwen3_5MoeForCausalLM",
     .model_type = "qwen3_5_moe_text",
     .needs = {"blk.%.attn_q_norm.weight", "blk.%.post_attention_norm.weight",
               "blk.%.ssm_norm.weight", "blk.%.ffn_gate_inp_shexp.weight"},
     .rules = {qwen35_rules, ATTENTION_RULES, EXPERTS_RULES},
     .config = {CONFIG, experts_config}},
    {.architecture = "lfm2",
     .class_name = "Lfm2ForCausalLM",
     .model_type = "lfm2",
     .needs = {"blk.%.attn_q_norm.weight"},
     .rules = {lfm2_rules, fs_hf_embedding_rules, fs_hf_attention_rules},
     .config = {fs_hf_hybrid_sizes, lfm2_config}},
    {.architecture = "lfm2moe",
     .class_name = "Lfm2MoeForCausalLM",
     .model_type = "lfm2_moe",
     .needs = {"blk.%.attn_q_norm.weight"},
     .rules = {lfm2_rules, fs_hf_embedding_rules, fs_hf_attention_rules},
     .config = {fs_hf_hybrid_sizes, lfm2_config, lfm2moe_config}},
    {.architecture = "mimo2",
     .class_name = "MiMoV2FlashForCausalLM",
     .model_type = "mimo_v2_flash",
     .rules = {mimo2_rules, fs_hf_choice_bias_rules, fs_hf_embedding_rules, fs_hf_norm_rules,
               fs_hf_attention_rules, fs_hf_mlp_rules, fs_hf_experts_rules},
     .config = {mimo2_config, fs_hf_rms_norm, fs_hf_silu, fs_hf_head_dim_config,
                fs_hf_attention_bias}},
    {.architecture = NULL},
};
