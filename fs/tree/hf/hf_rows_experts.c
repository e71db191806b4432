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
    JSON("norm_topk_prob", "false"),
    JSON("use_sliding_window", "false"),
    END_OF_CONFIG,
};

static const struct fs_hf_entry qwen3moe_config[] = {
    KEY("moe_intermediate_size", "expert_feed_forward_length"),
    JSON("norm_topk_prob", "true"),
    JSON("use_sliding_window", "false"),
    END_OF_CONFIG,
};

static const struct fs_hf_entry olmoe_config[] = {
    JSON("clip_qkv", "null"),
    JSON("norm_topk_prob", "false"),
    END_OF_CONFIG,
};

static const struct fs_hf_entry mellum_config[] = {
    KEY("moe_intermediate_size", "expert_feed_forward_length"),
    JSON("norm_topk_prob", "true"),
    CALL("sliding_window", fs_hf_write_sliding_window),
    CALL_WITH("layer_types", fs_hf_write_layer_types, 4),
    CALL("mlp_layer_types", fs_hf_write_mlp_types),
    CALL("rope", fs_hf_write_new_rope_by_type),
    END_OF_CONFIG,
};

/* ---- granitemoe, with and without shared experts ---- */

static const struct fs_hf_entry granitemoe_config[] = {
    KEY_OR("embedding_multiplier", "embedding_scale", "1.0"),
    KEY_OR("residual_multiplier", "residual_scale", "1.0"),
    CALL("attention_multiplier", fs_hf_write_attention_scale),
    KEY_OR("logits_scaling", "logit_scale", "1.0"),
    KEY_OR("shared_intermediate_size", "expert_shared_feed_forward_length", ""),
    END_OF_CONFIG,
};

static bool has_shared_experts(const struct fs_hf_model *hf)
{
    return fs_hf_any_tensor(hf, "blk.%.ffn_up_shexp");
}

/* ---- gpt-oss, llama4 ---- */

static const struct fs_hf_entry gpt_oss_config[] = {
    CALL("sliding_window", fs_hf_write_sliding_window),
    CALL_WITH("layer_types", fs_hf_write_layer_types, 2),
    END_OF_CONFIG,
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

/* The classes choose by sigmoid, and llama.cpp's converter reads that here. */
static void write_sigmoid(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    enum { SIGMOID = 2 };
    const uint64_t gating = fs_hf_number(config->hf, "expert_gating_func", SIGMOID);

    if (gating != SIGMOID)
        fs_hf_problem(config, "its key expert_gating_func is %u, and its class has 2, sigmoid",
                      (unsigned)gating);
    fs_hf_member_json(config, entry->name, "\"sigmoid\"");
}

static const struct fs_hf_entry sigmoid_config[] = {
    CALL("scoring_func", write_sigmoid),
    END_OF_CONFIG,
};

static const struct fs_hf_entry glm4moe_config[] = {
    HAS("use_qk_norm", "blk.%.attn_q_norm.weight"),
    JSON("num_nextn_predict_layers", "0"),
    END_OF_CONFIG,
};

static const struct fs_hf_entry exaone_moe_config[] = {
    KEY("num_experts", "expert_count"),
    KEY_OR("num_shared_experts", "expert_shared_count", "0"),
    CALL("mlp_layer_types", fs_hf_write_mlp_types),
    CALL("sliding_window", fs_hf_write_sliding_window),
    CALL_WITH("layer_types", fs_hf_write_layer_types, 4),
    END_OF_CONFIG,
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

static const struct fs_hf_entry hunyuan_moe_config[] = {
    KEY("num_experts", "expert_count"),
    KEY("moe_topk", "expert_used_count"),
    END_OF_CONFIG,
};

/* The class always divides the weights of the chosen experts by their sum. */
static void demand_normed_weights(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    (void)entry;
    if (!fs_hf_bool(config->hf, "expert_weights_norm", false))
        fs_hf_problem(config, "its key expert_weights_norm is not true");
}

static const struct fs_hf_entry hy_v3_config[] = {
    KEY("moe_intermediate_size", "expert_feed_forward_length"),
    KEY_OR("router_scaling_factor", "expert_weights_scale", "1.0"),
    CALL("mlp_layer_types", fs_hf_write_mlp_types),
    JSON("num_shared_experts", "1"),
    CALL("expert_weights_norm", demand_normed_weights),
    HAS("mlp_bias", "blk.%.ffn_up.bias"),
    END_OF_CONFIG,
};

static const struct fs_hf_entry afmoe_config[] = {
    KEY("moe_intermediate_size", "expert_feed_forward_length"),
    KEY_OR("num_shared_experts", "expert_shared_count", "0"),
    CALL("num_dense_layers", fs_hf_write_n_dense),
    KEY_OR("route_scale", "expert_weights_scale", "1.0"),
    KEY_OR("route_norm", "expert_weights_norm", "false"),
    CALL("sliding_window", fs_hf_write_sliding_window),
    CALL_WITH("layer_types", fs_hf_write_layer_types, 4),
    JSON("global_attn_every_n_layers", "4"),
    JSON("mup_enabled", "true"),
    END_OF_CONFIG,
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
    CALL("expert_weights_norm", demand_normed_weights),
    CALL("sliding_window", fs_hf_write_sliding_window),
    CALL("layer_types", write_laguna_layers),
    CALL("mlp_layer_types", fs_hf_write_mlp_types),
    CALL("partial_rotary_factor", fs_hf_write_new_rope_by_type),
    END_OF_CONFIG,
};

static const struct fs_hf_entry cohere2moe_config[] = {
    KEY("logit_scale", "logit_scale"),
    KEY_OR("norm_topk_prob", "expert_weights_norm", "false"),
    KEY_OR("num_shared_experts", "expert_shared_count", "0"),
    COUNT_OF("intermediate_size", "expert_feed_forward_length", fs_hf_write_largest),
    KEY("prefix_dense_intermediate_size", "feed_forward_length"),
    CALL("sliding_window", fs_hf_write_sliding_window),
    CALL_WITH("layer_types", fs_hf_write_layer_types, FS_HF_BY_KEY),
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

#define RMS_CONFIG fs_hf_sizes, fs_hf_rms_norm, fs_hf_silu

const struct fs_hf_row fs_hf_rows_experts[] = {
    {.architecture = "qwen2moe",
     .class_name = "Qwen2MoeForCausalLM",
     .model_type = "qwen2_moe",
     .naming = &gguf_naming_qwen2_moe,
     .config = {RMS_CONFIG, fs_hf_rope, num_experts, qwen2moe_config}},
    {.architecture = "qwen3moe",
     .class_name = "Qwen3MoeForCausalLM",
     .model_type = "qwen3_moe",
     .naming = &gguf_naming_qwen3_moe,
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_head_dim_config, fs_hf_attention_bias, num_experts,
                qwen3moe_config}},
    {.architecture = "qwen3vlmoe",
     .class_name = "Qwen3MoeForCausalLM",
     .model_type = "qwen3_moe",
     .naming = &gguf_naming_qwen3_moe,
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_head_dim_config, fs_hf_attention_bias, num_experts,
                qwen3moe_config}},
    {.architecture = "olmoe",
     .class_name = "OlmoeForCausalLM",
     .model_type = "olmoe",
     .naming = &gguf_naming_qwen3_moe,
     .config = {RMS_CONFIG, fs_hf_rope, num_experts, olmoe_config, fs_hf_attention_bias}},
    {.architecture = "mellum",
     .class_name = "MellumForCausalLM",
     .model_type = "mellum",
     .naming = &gguf_naming_qwen3_moe,
     .config = {RMS_CONFIG, fs_hf_head_dim_config, num_local_experts, mellum_config,
                fs_hf_attention_bias}},
    {.architecture = "granitemoe",
     .applies = has_shared_experts,
     .class_name = "GraniteMoeSharedForCausalLM",
     .model_type = "granitemoeshared",
     .naming = &gguf_naming_granitemoeshared,
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_attention_bias, num_local_experts,
                granitemoe_config}},
    {.architecture = "granitemoe",
     .class_name = "GraniteMoeForCausalLM",
     .model_type = "granitemoe",
     .naming = &gguf_naming_granitemoeshared,
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_attention_bias, num_local_experts,
                granitemoe_config}},
    {.architecture = "gpt-oss",
     .class_name = "GptOssForCausalLM",
     .model_type = "gpt_oss",
     .naming = &gguf_naming_gpt_oss,
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_head_dim_config, fs_hf_attention_bias,
                num_local_experts, gpt_oss_config}},
    {.architecture = "llama4",
     .class_name = "Llama4ForCausalLM",
     .model_type = "llama4_text",
     .naming = &gguf_naming_llama4,
     .config = {llama4_config, fs_hf_rms_norm, fs_hf_silu, fs_hf_rope, fs_hf_head_dim_config,
                num_local_experts, fs_hf_attention_bias}},
    {.architecture = "glm4moe",
     .class_name = "Glm4MoeForCausalLM",
     .model_type = "glm4_moe",
     .needs = {"blk.%.exp_probs_b.bias"},
     .naming = &gguf_naming_glm4_moe,
     .config = {fs_hf_moe_sizes, fs_hf_rms_norm, fs_hf_silu, fs_hf_partial_rope,
                fs_hf_head_dim_config, fs_hf_attention_bias, fs_hf_routed_config, glm4moe_config}},
    {.architecture = "dots1",
     .class_name = "Dots1ForCausalLM",
     .model_type = "dots1",
     .needs = {"blk.%.exp_probs_b.bias"},
     .naming = &gguf_naming_dots1,
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_head_dim_config, fs_hf_attention_bias,
                fs_hf_routed_config, sigmoid_config}},
    {.architecture = "exaone-moe",
     .class_name = "ExaoneMoeForCausalLM",
     .model_type = "exaone_moe",
     .needs = {"blk.%.exp_probs_b.bias"},
     .naming = &gguf_naming_exaone_moe,
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_head_dim_config, fs_hf_routed_config,
                exaone_moe_config, sigmoid_config}},
    {.architecture = "ernie4_5-moe",
     .class_name = "Ernie4_5_MoeForCausalLM",
     .model_type = "ernie4_5_moe",
     .needs = {"blk.%.exp_probs_b.bias"},
     .naming = &gguf_naming_ernie4_5_moe,
     .config = {RMS_CONFIG, fs_hf_rope, ernie_moe_config}},
    {.architecture = "hunyuan-moe",
     .class_name = "HunYuanMoEV1ForCausalLM",
     .model_type = "hunyuan_v1_moe",
     .naming = &gguf_naming_hunyuan_v1_moe,
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_head_dim_config, fs_hf_attention_bias,
                hunyuan_moe_config}},
    {.architecture = "hy_v3",
     .class_name = "HYV3ForCausalLM",
     .model_type = "hy_v3",
     .naming = &gguf_naming_hy_v3,
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_head_dim_config, num_experts, hy_v3_config,
                fs_hf_attention_bias}},
    {.architecture = "afmoe",
     .class_name = "AfmoeForCausalLM",
     .model_type = "afmoe",
     .needs = {"blk.%.exp_probs_b.bias"},
     .naming = &gguf_naming_afmoe,
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_head_dim_config, num_experts, afmoe_config,
                fs_hf_attention_bias}},
    {.architecture = "laguna",
     .class_name = "LagunaForCausalLM",
     .model_type = "laguna",
     .needs = {"blk.%.exp_probs_b.bias"},
     .naming = &gguf_naming_laguna,
     .config = {laguna_config, fs_hf_head_dim_config, fs_hf_rms_norm, fs_hf_silu, num_experts,
                fs_hf_attention_bias}},
    {.architecture = "cohere2moe",
     .class_name = "Cohere2MoeForCausalLM",
     .model_type = "cohere2_moe",
     .naming = &gguf_naming_cohere2_moe,
     .config = {fs_hf_moe_sizes, fs_hf_layer_norm, fs_hf_silu, fs_hf_rope, fs_hf_head_dim_config,
                num_experts, cohere2moe_config, gating_config}},
    {.architecture = "minimax-m2",
     .class_name = "MiniMaxM2ForCausalLM",
     .model_type = "minimax_m2",
     .needs = {"blk.%.exp_probs_b.bias"},
     .naming = &gguf_naming_minimax_m2,
     .config = {RMS_CONFIG, fs_hf_head_dim_config, num_local_experts, minimax_config,
                sigmoid_config}},
    {.architecture = "phimoe",
     .class_name = "PhimoeForCausalLM",
     .model_type = "phimoe",
     .naming = &gguf_naming_minimax_m2,
     .config = {fs_hf_sizes, fs_hf_silu, fs_hf_rope, num_local_experts, phimoe_config}},
    {.architecture = NULL},
};
