/* Checkpoints of hybrids: attention and linear attention, short convolutions, or a window. */
#include "fs/tree/hf/hf_rows.h"

/* ---- Qwen3-Next and Qwen 3.5 ---- */

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
    CALL_WITH("layer_types", fs_hf_write_layer_types, FS_HF_BY_KEY),
    CALL("mlp_layer_types", fs_hf_write_mlp_types),
    CALL_WITH("partial_rotary_factor", fs_hf_write_new_rope_by_type, 10000),
    KEY("n_routed_experts", "expert_count"),
    KEY("num_experts_per_tok", "expert_used_count"),
    KEY("moe_intermediate_size", "expert_feed_forward_length"),
    JSON("routed_scaling_factor", "1.0"),
    JSON("norm_topk_prob", "true"),
    KEY_OR("n_group", "expert_group_count", "1"),
    KEY_OR("topk_group", "expert_group_used_count", "1"),
    END_OF_CONFIG,
};

#define CONFIG                                                                                     \
    fs_hf_moe_sizes, fs_hf_head_dim_config, fs_hf_rms_norm, fs_hf_silu, fs_hf_partial_rope,        \
        linear_config

const struct fs_hf_row fs_hf_rows_hybrid[] = {
    {.architecture = "qwen3next",
     .class_name = "Qwen3NextForCausalLM",
     .model_type = "qwen3_next",
     .naming = &gguf_naming_qwen3_next,
     .config = {CONFIG, experts_config}},
    {.architecture = "qwen35",
     .class_name = "Qwen3_5ForCausalLM",
     .model_type = "qwen3_5_text",
     .naming = &gguf_naming_qwen3_5,
     .config = {CONFIG}},
    {.architecture = "qwen35moe",
     .class_name = "Qwen3_5MoeForCausalLM",
     .model_type = "qwen3_5_moe_text",
     .naming = &gguf_naming_qwen3_5_moe,
     .config = {CONFIG, experts_config}},
    {.architecture = "lfm2",
     .class_name = "Lfm2ForCausalLM",
     .model_type = "lfm2",
     .naming = &gguf_naming_lfm2,
     .config = {fs_hf_hybrid_sizes, lfm2_config}},
    {.architecture = "lfm2moe",
     .class_name = "Lfm2MoeForCausalLM",
     .model_type = "lfm2_moe",
     .naming = &gguf_naming_lfm2,
     .config = {fs_hf_hybrid_sizes, lfm2_config, lfm2moe_config}},
    {.architecture = "mimo2",
     .class_name = "MiMoV2FlashForCausalLM",
     .model_type = "mimo_v2_flash",
     .naming = &gguf_naming_mimo_v2_flash,
     .config = {mimo2_config, fs_hf_rms_norm, fs_hf_silu, fs_hf_head_dim_config,
                fs_hf_attention_bias}},
    {.architecture = NULL},
};
