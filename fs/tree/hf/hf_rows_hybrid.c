/* Checkpoints of hybrids: attention and linear attention, short convolutions, or a window. */
#include "fs/tree/hf/hf_rows.h"

/* ---- Qwen3-Next and Qwen 3.5 ---- */

static void write_value_head_dim(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const struct fs_hf_model *hf = config->hf;
    const uint64_t n_v = fs_hf_number(hf, "ssm.time_step_rank", 0);

    fs_hf_member_unsigned(config, entry->name,
                          n_v > 0 ? fs_hf_number(hf, "ssm.inner_size", 0) / n_v : 0);
}

static const struct fs_hf_entry linear_config[] = {
    TABLE(fs_hf_moe_sizes),
    HEAD_DIM,
    RMS_NORM,
    SILU,
    PARTIAL_ROPE,
    KINDS("layer_types", "blk.%.ssm_out.weight", "linear_attention", "full_attention"),
    CALL("linear_value_head_dim", write_value_head_dim),
    KEY("linear_conv_kernel_dim", "ssm.conv_kernel"),
    KEY("linear_key_head_dim", "ssm.state_size"),
    KEY("linear_num_key_heads", "ssm.group_count"),
    KEY("linear_num_value_heads", "ssm.time_step_rank"),
    ATTENTION_BIAS,
    END_OF_CONFIG,
};

static const struct fs_hf_entry experts_config[] = {
    NUM_EXPERTS,
    EXPERT_WIDTH,
    KEY("shared_expert_intermediate_size", "expert_shared_feed_forward_length"),
    JSON("norm_topk_prob", "true"),
    END_OF_CONFIG,
};

/* ---- lfm2 ---- */

static const struct fs_hf_entry lfm2_config[] = {
    KEY("norm_eps", "attention.layer_norm_rms_epsilon"),
    KEY("conv_L_cache", "shortconv.l_cache"),
    JSON("block_auto_adjust_ff_dim", "false"),
    KINDS("layer_types", "blk.%.attn_q.weight", "full_attention", "conv"),
    ROPE,
    END_OF_CONFIG,
};

static const struct fs_hf_entry lfm2moe_config[] = {
    EXPERT_WIDTH,
    NUM_EXPERTS,
    CALL("num_dense_layers", fs_hf_write_n_dense),
    KEY_OR("routed_scaling_factor", "expert_weights_scale", "1.0"),
    HAS("use_expert_bias", "blk.%.exp_probs_b.bias"),
    JSON("norm_topk_prob", "true"),
    BY_SIGMOID,
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
    COMMON_SIZES,
    KEY_OR("intermediate_size", "feed_forward_length", ""),
    CALL("num_key_value_heads", write_full_n_head_kv),
    KEY("v_head_dim", "attention.value_length"),
    KEY_OR("attention_value_scale", "attention.value_scale", "null"),
    WINDOW,
    CALL_WITH("layer_types", fs_hf_write_layer_types, FS_HF_BY_KEY),
    MLP_KINDS,
    CALL_WITH("partial_rotary_factor", fs_hf_write_new_rope_by_type, 10000),
    KEY("n_routed_experts", "expert_count"),
    KEY("num_experts_per_tok", "expert_used_count"),
    EXPERT_WIDTH,
    JSON("routed_scaling_factor", "1.0"),
    JSON("norm_topk_prob", "true"),
    EXPERT_GROUPS,
    END_OF_CONFIG,
};

const struct fs_hf_row fs_hf_rows_hybrid[] = {
    {"qwen3next", "Qwen3NextForCausalLM", "qwen3_next", gguf_naming_qwen3_next,
     .config = CONFIG(TABLE(linear_config), TABLE(experts_config))},
    {"qwen35", "Qwen3_5ForCausalLM", "qwen3_5_text", gguf_naming_qwen3_5,
     .config = CONFIG(TABLE(linear_config))},
    {"qwen35moe", "Qwen3_5MoeForCausalLM", "qwen3_5_moe_text", gguf_naming_qwen3_5_moe,
     .config = CONFIG(TABLE(linear_config), TABLE(experts_config))},
    {"lfm2", "Lfm2ForCausalLM", "lfm2", gguf_naming_lfm2,
     .config = CONFIG(TABLE(fs_hf_hybrid_sizes), TABLE(lfm2_config))},
    {"lfm2moe", "Lfm2MoeForCausalLM", "lfm2_moe", gguf_naming_lfm2,
     .config = CONFIG(TABLE(fs_hf_hybrid_sizes), TABLE(lfm2_config), TABLE(lfm2moe_config))},
    {"mimo2", "MiMoV2FlashForCausalLM", "mimo_v2_flash", gguf_naming_mimo_v2_flash,
     .config = CONFIG(TABLE(mimo2_config), RMS_NORM, SILU, HEAD_DIM, ATTENTION_BIAS)},
    {.architecture = NULL},
};
