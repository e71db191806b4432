/* Checkpoints of mixtures of experts, and of latent attention. */
#include "fs/tree/hf/hf_rows.h"

/* ---- qwen2moe, qwen3moe, olmoe ---- */

static const struct fs_hf_entry num_experts[] = {
    KEY("num_experts", "expert_count"),
    KEY("num_experts_per_tok", "expert_used_count"),
    END_OF_CONFIG,
};

static const struct fs_hf_entry num_local_experts[] = {
    KEY("num_local_experts", "expert_count"),
    KEY("num_experts_per_tok", "expert_used_count"),
    END_OF_CONFIG,
};

/* Files of early 2024 have no keys for these sizes. */
static const struct fs_hf_entry qwen2moe_config[] = {
    COUNT_OF("moe_intermediate_size", "blk.%.ffn_up_exps.weight", fs_hf_write_rows),
    COUNT_OF("shared_expert_intermediate_size", "blk.%.ffn_up_shexp.weight", fs_hf_write_rows),
    HAS("qkv_bias", "blk.%.attn_q.bias"),
    KEY_OR("norm_topk_prob", "expert_weights_norm", "false"),
    JSON("use_sliding_window", "false"),
    END_OF_CONFIG,
};

static const struct fs_hf_entry qwen3moe_config[] = {
    KEY("moe_intermediate_size", "expert_feed_forward_length"),
    KEY_OR("norm_topk_prob", "expert_weights_norm", "true"),
    JSON("use_sliding_window", "false"),
    END_OF_CONFIG,
};

static const struct fs_hf_entry olmoe_config[] = {
    KEY_OR("clip_qkv", "attention.clamp_kqv", "null"),
    KEY_OR("norm_topk_prob", "expert_weights_norm", "false"),
    END_OF_CONFIG,
};

static const struct fs_hf_entry mellum_config[] = {
    KEY("moe_intermediate_size", "expert_feed_forward_length"),
    KEY_OR("norm_topk_prob", "expert_weights_norm", "true"),
    CALL("sliding_window", fs_hf_write_sliding_window),
    CALL_WITH("layer_types", fs_hf_write_layer_types, 4),
    CALL("mlp_layer_types", fs_hf_write_mlp_types),
    CALL("rope", fs_hf_write_rope_by_type),
    END_OF_CONFIG,
};

/* ---- granitemoe, with and without shared experts ---- */

static const struct fs_hf_entry granitemoe_config[] = {
    KEY_OR("embedding_multiplier", "embedding_scale", "1.0"),
    KEY_OR("residual_multiplier", "residual_scale", "1.0"),
    KEY_OR("attention_multiplier", "attention.scale", "1.0"),
    KEY_OR("logits_scaling", "logit_scale", "1.0"),
    KEY_OR("shared_intermediate_size", "expert_shared_feed_forward_length", ""),
    END_OF_CONFIG,
};

static bool has_shared_experts(const struct fs_hf_model *hf)
{
    return fs_hf_any_tensor(hf, "blk.%.ffn_up_shexp");
}

/* ---- gpt-oss, llama4 ---- */

static const struct fs_hf_rule gpt_oss_rules[] = {
    TENSOR("blk.%.post_attention_norm", "model.layers.%.post_attention_layernorm"),
    TENSOR("blk.%.attn_sinks.weight", "model.layers.%.self_attn.sinks"),
    TENSOR("blk.%.ffn_gate_inp", "model.layers.%.mlp.router"),
    JOINED("blk.%.ffn_gate_exps.weight", "blk.%.ffn_up_exps.weight",
           "model.layers.%.mlp.experts.gate_up_proj", fs_hf_alternating_columns),
    JOINED("blk.%.ffn_gate_exps.bias", "blk.%.ffn_up_exps.bias",
           "model.layers.%.mlp.experts.gate_up_proj_bias", fs_hf_alternating),
    ELSEWHERE("blk.%.ffn_up_exps"),
    ARRANGED("blk.%.ffn_down_exps.weight", "model.layers.%.mlp.experts.down_proj",
             fs_hf_transposed),
    TENSOR("blk.%.ffn_down_exps.bias", "model.layers.%.mlp.experts.down_proj_bias"),
    END_OF_RULES,
};

static const struct fs_hf_entry gpt_oss_config[] = {
    CALL("sliding_window", fs_hf_write_sliding_window),
    CALL_WITH("layer_types", fs_hf_write_layer_types, 2),
    END_OF_CONFIG,
};

static const struct fs_hf_rule llama4_rules[] = {
    TENSOR("blk.%.ffn_gate", "model.layers.%.feed_forward.gate_proj"),
    TENSOR("blk.%.ffn_up", "model.layers.%.feed_forward.up_proj"),
    TENSOR("blk.%.ffn_down", "model.layers.%.feed_forward.down_proj"),
    TENSOR("blk.%.ffn_gate_inp", "model.layers.%.feed_forward.router"),
    TENSOR("blk.%.ffn_gate_shexp", "model.layers.%.feed_forward.shared_expert.gate_proj"),
    TENSOR("blk.%.ffn_up_shexp", "model.layers.%.feed_forward.shared_expert.up_proj"),
    TENSOR("blk.%.ffn_down_shexp", "model.layers.%.feed_forward.shared_expert.down_proj"),
    JOINED("blk.%.ffn_gate_exps.weight", "blk.%.ffn_up_exps.weight",
           "model.layers.%.feed_forward.experts.gate_up_proj", fs_hf_concatenated_columns),
    ELSEWHERE("blk.%.ffn_up_exps"),
    ARRANGED("blk.%.ffn_down_exps.weight", "model.layers.%.feed_forward.experts.down_proj",
             fs_hf_transposed),
    END_OF_RULES,
};

static void write_moe_layers(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const uint64_t n_layer = fs_hf_n_layer(config->hf);

    fs_hf_begin_array(config, entry->name);
    for (uint64_t i = 0; i < n_layer; i++) {
        if (fs_hf_layer_has(config->hf, i, "blk.%.ffn_gate_inp.weight"))
            fs_hf_element_unsigned(config, i);
    }
    fs_hf_end_array(config);
}

/* Queries and keys have a norm without weights, except with 128 experts; see llama.cpp. */
static void write_qk_norm(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    fs_hf_member_bool(config, entry->name, fs_hf_number(config->hf, "expert_count", 0) != 128);
}

static const struct fs_hf_entry llama4_config[] = {
    KEY("hidden_size", "embedding_length"),
    KEY("intermediate_size", "expert_feed_forward_length"),
    KEY("intermediate_size_mlp", "feed_forward_length"),
    CALL("num_hidden_layers", fs_hf_write_n_layer),
    KEY("num_attention_heads", "attention.head_count"),
    CALL("num_key_value_heads", fs_hf_write_n_head_kv),
    KEY("max_position_embeddings", "context_length"),
    KEY_OR("interleave_moe_layer_step", "interleave_moe_layer_step", ""),
    CALL("moe_layers", write_moe_layers),
    CALL("use_qk_norm", write_qk_norm),
    END_OF_CONFIG,
};

/* ---- experts chosen by sigmoid, with a bias for the choice ---- */

static const struct fs_hf_rule late_norm_rules[] = {
    TENSOR("blk.%.post_attention_norm", "model.layers.%.post_attention_layernorm"),
    END_OF_RULES,
};

static const struct fs_hf_entry glm4moe_config[] = {
    HAS("use_qk_norm", "blk.%.attn_q_norm.weight"),
    JSON("num_nextn_predict_layers", "0"),
    END_OF_CONFIG,
};

static const struct fs_hf_rule exaone_moe_rules[] = {
    TENSOR("blk.%.exp_probs_b.bias", "model.layers.%.mlp.e_score_correction_bias"),
    END_OF_RULES,
};

static const struct fs_hf_entry exaone_moe_config[] = {
    KEY("num_experts", "expert_count"),
    KEY_OR("num_shared_experts", "expert_shared_count", "0"),
    CALL("mlp_layer_types", fs_hf_write_mlp_types),
    CALL("sliding_window", fs_hf_write_sliding_window),
    CALL_WITH("layer_types", fs_hf_write_layer_types, 4),
    END_OF_CONFIG,
};

static const struct fs_hf_rule ernie_moe_rules[] = {
    TENSOR("blk.%.exp_probs_b.bias", "model.layers.%.mlp.moe_statics.e_score_correction_bias"),
    END_OF_RULES,
};

static void write_last_moe_layer(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const uint64_t n_layer = fs_hf_n_layer(config->hf);

    fs_hf_member_unsigned(config, entry->name, n_layer > 0 ? n_layer - 1 : 0);
}

static const struct fs_hf_entry ernie_moe_config[] = {
    KEY("moe_num_experts", "expert_count"),
    KEY("moe_k", "expert_used_count"),
    KEY("moe_intermediate_size", "expert_feed_forward_length"),
    KEY_OR("moe_num_shared_experts", "expert_shared_count", "0"),
    KEY_OR("moe_layer_interval", "interleave_moe_layer_step", "1"),
    CALL("moe_layer_start_index", fs_hf_write_n_dense),
    CALL("moe_layer_end_index", write_last_moe_layer),
    HAS("use_bias", "blk.%.attn_q.bias"),
    END_OF_CONFIG,
};

static const struct fs_hf_rule hunyuan_moe_rules[] = {
    TENSOR("blk.%.attn_q_norm", "model.layers.%.self_attn.query_layernorm"),
    TENSOR("blk.%.attn_k_norm", "model.layers.%.self_attn.key_layernorm"),
    TENSOR("blk.%.ffn_gate_inp", "model.layers.%.mlp.gate.wg"),
    TENSOR("blk.%.ffn_gate_shexp", "model.layers.%.mlp.shared_mlp.gate_proj"),
    TENSOR("blk.%.ffn_up_shexp", "model.layers.%.mlp.shared_mlp.up_proj"),
    TENSOR("blk.%.ffn_down_shexp", "model.layers.%.mlp.shared_mlp.down_proj"),
    END_OF_RULES,
};

static const struct fs_hf_entry hunyuan_moe_config[] = {
    KEY("num_experts", "expert_count"),
    KEY("moe_topk", "expert_used_count"),
    END_OF_CONFIG,
};

static const struct fs_hf_rule hy_v3_rules[] = {
    TENSOR("blk.%.exp_probs_b", "model.layers.%.mlp.expert_bias"),
    TENSOR("blk.%.ffn_gate_inp", "model.layers.%.mlp.router.gate"),
    TENSOR("blk.%.ffn_gate_shexp", "model.layers.%.mlp.shared_mlp.gate_proj"),
    TENSOR("blk.%.ffn_up_shexp", "model.layers.%.mlp.shared_mlp.up_proj"),
    TENSOR("blk.%.ffn_down_shexp", "model.layers.%.mlp.shared_mlp.down_proj"),
    END_OF_RULES,
};

static const struct fs_hf_entry hy_v3_config[] = {
    KEY("moe_intermediate_size", "expert_feed_forward_length"),
    KEY_OR("router_scaling_factor", "expert_weights_scale", "1.0"),
    CALL("mlp_layer_types", fs_hf_write_mlp_types),
    JSON("num_shared_experts", "1"),
    HAS("mlp_bias", "blk.%.ffn_up.bias"),
    END_OF_CONFIG,
};

static const struct fs_hf_rule afmoe_rules[] = {
    TENSOR("blk.%.post_attention_norm", "model.layers.%.post_attention_layernorm"),
    TENSOR("blk.%.ffn_norm", "model.layers.%.pre_mlp_layernorm"),
    TENSOR("blk.%.post_ffw_norm", "model.layers.%.post_mlp_layernorm"),
    TENSOR("blk.%.attn_gate", "model.layers.%.self_attn.gate_proj"),
    TENSOR("blk.%.ffn_gate_inp", "model.layers.%.mlp.router.gate"),
    TENSOR("blk.%.exp_probs_b.bias", "model.layers.%.mlp.expert_bias"),
    END_OF_RULES,
};

static const struct fs_hf_entry afmoe_config[] = {
    KEY("moe_intermediate_size", "expert_feed_forward_length"),
    KEY_OR("num_shared_experts", "expert_shared_count", "0"),
    CALL("num_dense_layers", fs_hf_write_n_dense),
    KEY_OR("route_scale", "expert_weights_scale", "1.0"),
    KEY_OR("route_norm", "expert_weights_norm", ""),
    CALL("sliding_window", fs_hf_write_sliding_window),
    CALL_WITH("layer_types", fs_hf_write_layer_types, 4),
    JSON("global_attn_every_n_layers", "4"),
    JSON("mup_enabled", "true"),
    END_OF_CONFIG,
};

static const struct fs_hf_rule laguna_rules[] = {
    TENSOR("blk.%.attn_gate", "model.layers.%.self_attn.g_proj"),
    TENSOR("blk.%.exp_probs_b.bias", "model.layers.%.mlp.experts.e_score_correction_bias"),
    END_OF_RULES,
};

/* No key says which layers have a window: all but the first of four. */
static void write_laguna_layers(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const struct fs_hf_model *hf = config->hf;
    const uint64_t n_layer = fs_hf_n_layer(hf);
    const bool has_window = fs_hf_number(hf, "attention.sliding_window", 0) > 0;

    fs_hf_begin_array(config, entry->name);
    for (uint64_t i = 0; i < n_layer; i++)
        fs_hf_element_text(config,
                           has_window && i % 4 > 0 ? "sliding_attention" : "full_attention");
    fs_hf_end_array(config);
    fs_hf_begin_array(config, "num_attention_heads_per_layer");
    for (uint64_t i = 0; i < n_layer; i++)
        fs_hf_element_unsigned(config, fs_hf_n_head(hf, i));
    fs_hf_end_array(config);
}

static const struct fs_hf_entry laguna_config[] = {
    KEY("hidden_size", "embedding_length"),
    KEY("intermediate_size", "feed_forward_length"),
    CALL("num_hidden_layers", fs_hf_write_n_layer),
    COUNT_OF("num_attention_heads", "attention.head_count", fs_hf_write_largest),
    COUNT_OF("num_key_value_heads", "attention.head_count_kv", fs_hf_write_largest),
    KEY("max_position_embeddings", "context_length"),
    KEY("moe_intermediate_size", "expert_feed_forward_length"),
    KEY("shared_expert_intermediate_size", "expert_shared_feed_forward_length"),
    KEY_OR("moe_routed_scaling_factor", "expert_weights_scale", "1.0"),
    CALL("sliding_window", fs_hf_write_sliding_window),
    CALL("layer_types", write_laguna_layers),
    CALL("mlp_layer_types", fs_hf_write_mlp_types),
    CALL("partial_rotary_factor", fs_hf_write_rope_by_type),
    END_OF_CONFIG,
};

static const struct fs_hf_entry cohere2moe_config[] = {
    KEY("logit_scale", "logit_scale"),
    KEY("norm_topk_prob", "expert_weights_norm"),
    KEY_OR("num_shared_experts", "expert_shared_count", "0"),
    COUNT_OF("intermediate_size", "expert_feed_forward_length", fs_hf_write_largest),
    KEY("prefix_dense_intermediate_size", "feed_forward_length"),
    CALL("sliding_window", fs_hf_write_sliding_window),
    CALL_WITH("layer_types", fs_hf_write_layer_types, 4),
    CALL("mlp_layer_types", fs_hf_write_mlp_types),
    END_OF_CONFIG,
};

static void write_gating(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    fs_hf_member_json(config, entry->name,
                      fs_hf_number(config->hf, "expert_gating_func", 2) == 1 ? "\"softmax\""
                                                                             : "\"sigmoid\"");
}

static const struct fs_hf_entry gating_config[] = {
    CALL("expert_selection_fn", write_gating),
    END_OF_CONFIG,
};

/* ---- minimax-m2, phimoe ---- */

static const struct fs_hf_entry minimax_config[] = {
    CALL("partial_rotary_factor", fs_hf_write_rope),
    KEY_OR("rotary_dim", "rope.dimension_count", ""),
    END_OF_CONFIG,
};

static const struct fs_hf_entry phimoe_config[] = {
    KEY("rms_norm_eps", "attention.layer_norm_rms_epsilon"),
    HAS("attention_bias", "blk.%.attn_q.bias"),
    HAS("lm_head_bias", "output.bias"),
    CALL("sliding_window", fs_hf_write_sliding_window),
    END_OF_CONFIG,
};

#define RULES_BUT_QK                                                                               \
    fs_hf_embedding_rules, fs_hf_norm_rules, fs_hf_attention_rules, fs_hf_mlp_rules,               \
        fs_hf_experts_rules
#define RMS_CONFIG fs_hf_sizes, fs_hf_rms_norm, fs_hf_silu

const struct fs_hf_row fs_hf_rows_experts[] = {
    {.architecture = "qwen2moe",
     .class_name = "Qwen2MoeForCausalLM",
     .model_type = "qwen2_moe",
     .needs = {"blk.%.ffn_gate_inp_shexp.weight"},
     .rules = {fs_hf_shared_expert_rules, RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_rope, num_experts, qwen2moe_config}},
    {.architecture = "qwen3moe",
     .class_name = "Qwen3MoeForCausalLM",
     .model_type = "qwen3_moe",
     .needs = {"blk.%.attn_q_norm.weight"},
     .rules = {RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_head_dim_config, fs_hf_attention_bias, num_experts,
                qwen3moe_config}},
    {.architecture = "qwen3vlmoe",
     .class_name = "Qwen3MoeForCausalLM",
     .model_type = "qwen3_moe",
     .needs = {"blk.%.attn_q_norm.weight"},
     .rules = {RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_head_dim_config, fs_hf_attention_bias, num_experts,
                qwen3moe_config}},
    {.architecture = "olmoe",
     .class_name = "OlmoeForCausalLM",
     .model_type = "olmoe",
     .needs = {"blk.%.attn_q_norm.weight"},
     .rules = {RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_rope, num_experts, olmoe_config, fs_hf_attention_bias}},
    {.architecture = "mellum",
     .class_name = "MellumForCausalLM",
     .model_type = "mellum",
     .needs = {"blk.%.attn_q_norm.weight"},
     .rules = {RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_head_dim_config, num_local_experts, mellum_config,
                fs_hf_attention_bias}},
    {.architecture = "granitemoe",
     .applies = has_shared_experts,
     .class_name = "GraniteMoeSharedForCausalLM",
     .model_type = "granitemoeshared",
     .rules = {fs_hf_granite_experts_rules, fs_hf_rotated_rules, RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_attention_bias, num_local_experts,
                granitemoe_config}},
    {.architecture = "granitemoe",
     .class_name = "GraniteMoeForCausalLM",
     .model_type = "granitemoe",
     .rules = {fs_hf_granite_experts_rules, fs_hf_rotated_rules, RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_attention_bias, num_local_experts,
                granitemoe_config}},
    {.architecture = "gpt-oss",
     .class_name = "GptOssForCausalLM",
     .model_type = "gpt_oss",
     .needs = {"blk.%.post_attention_norm.weight", "blk.%.attn_sinks.weight",
               "blk.%.attn_output.bias"},
     .rules = {gpt_oss_rules, RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_head_dim_config, fs_hf_attention_bias,
                num_local_experts, gpt_oss_config}},
    {.architecture = "llama4",
     .class_name = "Llama4ForCausalLM",
     .model_type = "llama4_text",
     .rules = {llama4_rules, RULES_BUT_QK},
     .config = {llama4_config, fs_hf_rms_norm, fs_hf_silu, fs_hf_rope, fs_hf_head_dim_config,
                num_local_experts, fs_hf_attention_bias}},
    {.architecture = "glm4moe",
     .class_name = "Glm4MoeForCausalLM",
     .model_type = "glm4_moe",
     .needs = {"blk.%.post_attention_norm.weight", "blk.%.exp_probs_b.bias"},
     .rules = {late_norm_rules, fs_hf_choice_bias_rules, fs_hf_shared_experts_rules, RULES_BUT_QK},
     .config = {fs_hf_moe_sizes, fs_hf_rms_norm, fs_hf_silu, fs_hf_partial_rope,
                fs_hf_head_dim_config, fs_hf_attention_bias, fs_hf_routed_config, glm4moe_config}},
    {.architecture = "dots1",
     .class_name = "Dots1ForCausalLM",
     .model_type = "dots1",
     .needs = {"blk.%.attn_q_norm.weight", "blk.%.exp_probs_b.bias"},
     .rules = {fs_hf_choice_bias_rules, fs_hf_shared_experts_rules, RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_head_dim_config, fs_hf_attention_bias,
                fs_hf_routed_config}},
    {.architecture = "exaone-moe",
     .class_name = "ExaoneMoeForCausalLM",
     .model_type = "exaone_moe",
     .needs = {"blk.%.attn_q_norm.weight", "blk.%.exp_probs_b.bias"},
     .rules = {exaone_moe_rules, fs_hf_shared_experts_rules, RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_head_dim_config, fs_hf_routed_config,
                exaone_moe_config}},
    {.architecture = "ernie4_5-moe",
     .class_name = "Ernie4_5_MoeForCausalLM",
     .model_type = "ernie4_5_moe",
     .needs = {"blk.%.exp_probs_b.bias"},
     .rules = {ernie_moe_rules, fs_hf_shared_experts_rules, RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_rope, ernie_moe_config}},
    {.architecture = "hunyuan-moe",
     .class_name = "HunYuanMoEV1ForCausalLM",
     .model_type = "hunyuan_v1_moe",
     .needs = {"blk.%.attn_q_norm.weight"},
     .rules = {hunyuan_moe_rules, RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_head_dim_config, fs_hf_attention_bias,
                hunyuan_moe_config}},
    {.architecture = "hy_v3",
     .class_name = "HYV3ForCausalLM",
     .model_type = "hy_v3",
     .needs = {"blk.%.attn_q_norm.weight"},
     .rules = {hy_v3_rules, RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_head_dim_config, num_experts, hy_v3_config,
                fs_hf_attention_bias}},
    {.architecture = "afmoe",
     .class_name = "AfmoeForCausalLM",
     .model_type = "afmoe",
     .needs = {"blk.%.attn_q_norm.weight", "blk.%.post_attention_norm.weight",
               "blk.%.post_ffw_norm.weight", "blk.%.exp_probs_b.bias", "blk.%.attn_gate.weight"},
     .rules = {afmoe_rules, fs_hf_shared_experts_rules, RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_head_dim_config, num_experts, afmoe_config,
                fs_hf_attention_bias}},
    {.architecture = "laguna",
     .class_name = "LagunaForCausalLM",
     .model_type = "laguna",
     .needs = {"blk.%.attn_q_norm.weight", "blk.%.exp_probs_b.bias", "blk.%.attn_gate.weight"},
     .rules = {laguna_rules, fs_hf_shared_expert_rules, RULES_BUT_QK},
     .config = {laguna_config, fs_hf_head_dim_config, fs_hf_rms_norm, fs_hf_silu, num_experts,
                fs_hf_attention_bias}},
    {.architecture = "cohere2moe",
     .class_name = "Cohere2MoeForCausalLM",
     .model_type = "cohere2_moe",
     .rules = {fs_hf_shared_experts_rules, RULES_BUT_QK},
     .config = {fs_hf_moe_sizes, fs_hf_layer_norm, fs_hf_silu, fs_hf_rope, fs_hf_head_dim_config,
                num_experts, cohere2moe_config, gating_config}},
    {.architecture = "minimax-m2",
     .class_name = "MiniMaxM2ForCausalLM",
     .model_type = "minimax_m2",
     .needs = {"blk.%.attn_q_norm.weight", "blk.%.exp_probs_b.bias"},
     .rules = {fs_hf_block_sparse_rules, RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_head_dim_config, num_local_experts, minimax_config}},
    {.architecture = "phimoe",
     .class_name = "PhimoeForCausalLM",
     .model_type = "phimoe",
     .needs = {"blk.%.attn_norm.bias"},
     .rules = {fs_hf_block_sparse_rules, RULES_BUT_QK},
     .config = {fs_hf_sizes, fs_hf_silu, fs_hf_rope, num_local_experts, phimoe_config}},
    {.architecture = NULL},
};
