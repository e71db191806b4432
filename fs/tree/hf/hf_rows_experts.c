/* Checkpoints of mixtures of experts, and of latent attention. */
#include "fs/tree/hf/hf_rows.h"

/* ---- qwen2moe, qwen3moe, olmoe ---- */

/* Files of early 2024 have no keys for these sizes. */
static const struct fs_hf_entry qwen2moe_config[] = {
    COUNT_OF("moe_intermediate_size", "blk.%.ffn_up_exps.weight", fs_hf_write_rows),
    COUNT_OF("shared_expert_intermediate_size", "blk.%.ffn_up_shexp.weight", fs_hf_write_rows),
    HAS_BIASES("qkv_bias", "blk.%.attn_q.bias", "attn_q attn_k attn_v"),
    JSON("norm_topk_prob", "false"),
    JSON("use_sliding_window", "false"),
    END_OF_CONFIG,
};

static const struct fs_hf_entry qwen3moe_config[] = {
    EXPERT_WIDTH,
    JSON("norm_topk_prob", "true"),
    JSON("use_sliding_window", "false"),
    END_OF_CONFIG,
};

static const struct fs_hf_entry mellum_config[] = {
    EXPERT_WIDTH,  JSON("norm_topk_prob", "true"),
    WINDOW,        CALL_WITH("layer_types", fs_hf_write_layer_types, 4),
    MLP_KINDS,     CALL("rope", fs_hf_write_new_rope_by_type),
    END_OF_CONFIG,
};

/* ---- granitemoe, with and without shared experts ---- */

static const struct fs_hf_entry granitemoe_config[] = {
    GRANITE_SCALES,
    KEY_OR("logits_scaling", "logit_scale", "1.0"),
    KEY_OR("shared_intermediate_size", "expert_shared_feed_forward_length", ""),
    END_OF_CONFIG,
};

static bool has_shared_experts(const struct fs_hf_model *hf)
{
    return fs_hf_any_tensor(hf, "blk.%.ffn_up_shexp");
}

/* ---- gpt-oss, llama4 ---- */

/* Queries and keys have a norm without weights, except with 128 experts; see llama.cpp. */
static void write_qk_norm(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    fs_hf_member_bool(config, entry->name, fs_hf_number(config->hf, "expert_count", 0) != 128);
}

static const struct fs_hf_entry llama4_config[] = {
    COMMON_SIZES,
    KEY("intermediate_size", "expert_feed_forward_length"),
    KEY("intermediate_size_mlp", "feed_forward_length"),
    CALL("num_key_value_heads", fs_hf_write_n_head_kv),
    KEY_OR("interleave_moe_layer_step", "interleave_moe_layer_step", ""),
    COUNT_OF("moe_layers", "blk.%.ffn_gate_inp.weight", fs_hf_write_layers_with),
    CALL("use_qk_norm", write_qk_norm),
    END_OF_CONFIG,
};

/* ---- experts chosen by sigmoid, with a bias for the choice ---- */

/* llama.cpp's converter reads the member. */
#define SIGMOID_SCORES BY_SIGMOID, JSON("scoring_func", "\"sigmoid\"")

static void write_last_moe_layer(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const uint64_t n_layer = fs_hf_n_layer(config->hf);

    fs_hf_member_unsigned(config, entry->name, n_layer > 0 ? n_layer - 1 : 0);
}

static const struct fs_hf_entry ernie_moe_config[] = {
    KEY("moe_num_experts", "expert_count"),
    KEY("moe_k", "expert_used_count"),
    EXPERT_WIDTH,
    KEY_OR("moe_num_shared_experts", "expert_shared_count", "0"),
    KEY_OR("moe_layer_interval", "interleave_moe_layer_step", "1"),
    CALL("moe_layer_start_index", fs_hf_write_n_dense),
    CALL("moe_layer_end_index", write_last_moe_layer),
    HAS_BIASES("use_bias", "blk.%.attn_q.bias", OF_ATTENTION),
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
    EXPERT_WIDTH,
    KEY_OR("router_scaling_factor", "expert_weights_scale", "1.0"),
    MLP_KINDS,
    JSON("num_shared_experts", "1"),
    CALL("expert_weights_norm", demand_normed_weights),
    BY_SIGMOID,
    END_OF_CONFIG,
};

static const struct fs_hf_entry afmoe_config[] = {
    EXPERT_WIDTH,
    KEY_OR("num_shared_experts", "expert_shared_count", "0"),
    CALL("num_dense_layers", fs_hf_write_n_dense),
    KEY_OR("route_scale", "expert_weights_scale", "1.0"),
    KEY_OR("route_norm", "expert_weights_norm", "false"),
    WINDOW,
    CALL_WITH("layer_types", fs_hf_write_layer_types, 4),
    JSON("global_attn_every_n_layers", "4"),
    JSON("mup_enabled", "true"),
    BY_SIGMOID,
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
    EXPERT_WIDTH,
    KEY("shared_expert_intermediate_size", "expert_shared_feed_forward_length"),
    KEY_OR("moe_routed_scaling_factor", "expert_weights_scale", "1.0"),
    CALL("expert_weights_norm", demand_normed_weights),
    WINDOW,
    CALL("layer_types", write_laguna_layers),
    MLP_KINDS,
    CALL("partial_rotary_factor", fs_hf_write_new_rope_by_type),
    BY_SIGMOID,
    END_OF_CONFIG,
};

static const struct fs_hf_entry cohere2moe_config[] = {
    KEY("logit_scale", "logit_scale"),
    KEY_OR("norm_topk_prob", "expert_weights_norm", "false"),
    KEY_OR("num_shared_experts", "expert_shared_count", "0"),
    COUNT_OF("intermediate_size", "expert_feed_forward_length", fs_hf_write_largest),
    KEY("prefix_dense_intermediate_size", "feed_forward_length"),
    WINDOW,
    CALL_WITH("layer_types", fs_hf_write_layer_types, FS_HF_BY_KEY),
    MLP_KINDS,
    END_OF_CONFIG,
};

static void write_gating(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    fs_hf_member_json(config, entry->name,
                      fs_hf_number(config->hf, "expert_gating_func", 2) == 1 ? "\"softmax\""
                                                                             : "\"sigmoid\"");
}

const struct fs_hf_row fs_hf_rows_experts[] = {
    {"qwen2moe", "Qwen2MoeForCausalLM", "qwen2_moe", gguf_naming_qwen2_moe,
     .config = CONFIG(SIZES, RMS_NORM, SILU, ROPE, NUM_EXPERTS, TABLE(qwen2moe_config))},
    {"qwen3moe", "Qwen3MoeForCausalLM", "qwen3_moe", gguf_naming_qwen3_moe,
     .config = CONFIG(SIZES, RMS_NORM, SILU, ROPE, HEAD_DIM, ATTENTION_BIAS, NUM_EXPERTS,
                      TABLE(qwen3moe_config))},
    {"qwen3vlmoe", "Qwen3MoeForCausalLM", "qwen3_moe", gguf_naming_qwen3_moe,
     .config = CONFIG(SIZES, RMS_NORM, SILU, ROPE, HEAD_DIM, ATTENTION_BIAS, NUM_EXPERTS,
                      TABLE(qwen3moe_config))},
    {"olmoe", "OlmoeForCausalLM", "olmoe", gguf_naming_qwen3_moe,
     .config = CONFIG(SIZES, RMS_NORM, SILU, ROPE, NUM_EXPERTS, JSON("clip_qkv", "null"),
                      JSON("norm_topk_prob", "false"), ATTENTION_BIAS)},
    {"mellum", "MellumForCausalLM", "mellum", gguf_naming_qwen3_moe,
     .config = CONFIG(SIZES, RMS_NORM, SILU, HEAD_DIM, NUM_LOCAL_EXPERTS, TABLE(mellum_config),
                      ATTENTION_BIAS)},
    {"granitemoe", "GraniteMoeSharedForCausalLM", "granitemoeshared", gguf_naming_granitemoeshared,
     .applies = has_shared_experts,
     .config = CONFIG(SIZES, RMS_NORM, SILU, ROPE, ATTENTION_BIAS, NUM_LOCAL_EXPERTS,
                      TABLE(granitemoe_config))},
    {"granitemoe", "GraniteMoeForCausalLM", "granitemoe", gguf_naming_granitemoeshared,
     .config = CONFIG(SIZES, RMS_NORM, SILU, ROPE, ATTENTION_BIAS, NUM_LOCAL_EXPERTS,
                      TABLE(granitemoe_config))},
    {"gpt-oss", "GptOssForCausalLM", "gpt_oss", gguf_naming_gpt_oss,
     .config = CONFIG(SIZES, RMS_NORM, SILU, ROPE, HEAD_DIM, ATTENTION_BIAS, NUM_LOCAL_EXPERTS,
                      WINDOW, CALL_WITH("layer_types", fs_hf_write_layer_types, 2))},
    {"llama4", "Llama4ForCausalLM", "llama4_text", gguf_naming_llama4,
     .config = CONFIG(TABLE(llama4_config), RMS_NORM, SILU, ROPE, HEAD_DIM, NUM_LOCAL_EXPERTS,
                      ATTENTION_BIAS)},
    {"glm4moe", "Glm4MoeForCausalLM", "glm4_moe", gguf_naming_glm4_moe,
     .needs = "blk.%.exp_probs_b.bias",
     .config =
         CONFIG(TABLE(fs_hf_moe_sizes), RMS_NORM, SILU, PARTIAL_ROPE, HEAD_DIM, ATTENTION_BIAS,
                TABLE(fs_hf_routed_config), HAS("use_qk_norm", "blk.%.attn_q_norm.weight"),
                JSON("num_nextn_predict_layers", "0"), BY_SIGMOID)},
    {"dots1", "Dots1ForCausalLM", "dots1", gguf_naming_dots1, .needs = "blk.%.exp_probs_b.bias",
     .config = CONFIG(SIZES, RMS_NORM, SILU, ROPE, HEAD_DIM, ATTENTION_BIAS,
                      TABLE(fs_hf_routed_config), SIGMOID_SCORES)},
    {"exaone-moe", "ExaoneMoeForCausalLM", "exaone_moe", gguf_naming_exaone_moe,
     .needs = "blk.%.exp_probs_b.bias",
     .config = CONFIG(SIZES, RMS_NORM, SILU, ROPE, HEAD_DIM, TABLE(fs_hf_routed_config),
                      KEY("num_experts", "expert_count"),
                      KEY_OR("num_shared_experts", "expert_shared_count", "0"), MLP_KINDS, WINDOW,
                      CALL_WITH("layer_types", fs_hf_write_layer_types, 4), SIGMOID_SCORES)},
    {"ernie4_5-moe", "Ernie4_5_MoeForCausalLM", "ernie4_5_moe", gguf_naming_ernie4_5_moe,
     .needs = "blk.%.exp_probs_b.bias",
     .config = CONFIG(SIZES, RMS_NORM, SILU, ROPE, TABLE(ernie_moe_config))},
    {"hunyuan-moe", "HunYuanMoEV1ForCausalLM", "hunyuan_v1_moe", gguf_naming_hunyuan_v1_moe,
     .config = CONFIG(SIZES, RMS_NORM, SILU, ROPE, HEAD_DIM, ATTENTION_BIAS,
                      KEY("num_experts", "expert_count"), KEY("moe_topk", "expert_used_count"))},
    {"hy_v3", "HYV3ForCausalLM", "hy_v3", gguf_naming_hy_v3,
     .config = CONFIG(SIZES, RMS_NORM, SILU, ROPE, HEAD_DIM, NUM_EXPERTS, TABLE(hy_v3_config),
                      ATTENTION_BIAS)},
    {"afmoe", "AfmoeForCausalLM", "afmoe", gguf_naming_afmoe, .needs = "blk.%.exp_probs_b.bias",
     .config = CONFIG(SIZES, RMS_NORM, SILU, ROPE, HEAD_DIM, NUM_EXPERTS, TABLE(afmoe_config),
                      ATTENTION_BIAS)},
    {"laguna", "LagunaForCausalLM", "laguna", gguf_naming_laguna, .needs = "blk.%.exp_probs_b.bias",
     .config = CONFIG(TABLE(laguna_config), HEAD_DIM, RMS_NORM, SILU, NUM_EXPERTS, ATTENTION_BIAS)},
    {"cohere2moe", "Cohere2MoeForCausalLM", "cohere2_moe", gguf_naming_cohere2_moe,
     .config = CONFIG(TABLE(fs_hf_moe_sizes), LAYER_NORM, SILU, ROPE, HEAD_DIM, NUM_EXPERTS,
                      TABLE(cohere2moe_config), CALL("expert_selection_fn", write_gating))},
    {"minimax-m2", "MiniMaxM2ForCausalLM", "minimax_m2", gguf_naming_minimax_m2,
     .needs = "blk.%.exp_probs_b.bias",
     .config = CONFIG(SIZES, RMS_NORM, SILU, HEAD_DIM, NUM_LOCAL_EXPERTS, PARTIAL_ROPE,
                      KEY_OR("rotary_dim", "rope.dimension_count", ""), SIGMOID_SCORES)},
    {"phimoe", "PhimoeForCausalLM", "phimoe", gguf_naming_minimax_m2,
     .config = CONFIG(SIZES, SILU, ROPE, NUM_LOCAL_EXPERTS, RMS_NORM, ATTENTION_BIAS,
                      HAS("lm_head_bias", "output.bias"), WINDOW)},
    {.architecture = NULL},
};
