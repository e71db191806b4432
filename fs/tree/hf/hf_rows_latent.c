/* Checkpoints of models with latent attention. */
#include "fs/tree/hf/hf_rows.h"

static bool has_choice_bias(const struct fs_hf_model *hf)
{
    return fs_hf_any_tensor(hf, "blk.%.exp_probs_b.bias") ||
           fs_hf_number(hf, "expert_count", 0) == 0;
}

static void write_rank(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    if (fs_hf_any_tensor(config->hf, entry->key))
        fs_hf_write_rows(config, entry);
    else
        fs_hf_member_json(config, entry->name, "null");
}

/* The widths of a head: its rotated part, the rest, and its value. */
static void write_latent_widths(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const struct fs_hf_model *hf = config->hf;
    const uint64_t key =
        fs_hf_number(hf, "attention.key_length_mla", fs_hf_number(hf, "attention.key_length", 0));
    const struct gguf_tensor *output = fs_hf_any_tensor(hf, "blk.%.attn_output.weight");
    const uint64_t n_head = fs_hf_n_head(hf, 0);
    const uint64_t value = fs_hf_number(hf, "attention.value_length_mla",
                                        output && n_head > 0 ? output->ne[0] / n_head : 0);
    const uint64_t rotated = fs_hf_number(hf, "rope.dimension_count", 0);

    (void)entry;
    if (fs_hf_any_tensor(hf, "blk.%.attn_k_b") && !fs_hf_key(hf, "attention.key_length_mla"))
        fs_hf_problem(config, "it has no key attention.key_length_mla");
    if (rotated == 0 || key <= rotated)
        fs_hf_problem(config, "its keys attention.key_length_mla and rope.dimension_count do not "
                              "give the widths of a head");
    fs_hf_member_unsigned(config, "qk_rope_head_dim", rotated);
    fs_hf_member_unsigned(config, "qk_nope_head_dim", key - rotated);
    fs_hf_member_unsigned(config, "v_head_dim", value);
    fs_hf_member_unsigned(config, "num_key_value_heads", n_head);
}

static const struct fs_hf_entry latent_config[] = {
    COMMON_SIZES,
    KEY("intermediate_size", "feed_forward_length"),
    COUNT_OF("q_lora_rank", "blk.%.attn_q_a.weight", write_rank),
    KEY("kv_lora_rank", "attention.kv_lora_rank"),
    CALL("widths", write_latent_widths),
    CALL_WITH("rope", fs_hf_write_rope, 10),
    END_OF_CONFIG,
};

static void write_choice_method(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    fs_hf_member_json(config, entry->name,
                      fs_hf_number(config->hf, "expert_group_count", 1) > 1
                          ? "\"group_limited_greedy\""
                          : "\"greedy\"");
}

static const struct fs_hf_entry indexer_config[] = {
    KEY("index_n_heads", "attention.indexer.head_count"),
    KEY("index_head_dim", "attention.indexer.key_length"),
    KEY("index_topk", "attention.indexer.top_k"),
    MLP_KINDS,
    END_OF_CONFIG,
};

/* The scales of MiniCPM 3 are in no key; llama.cpp has them as constants. */
static const struct fs_hf_entry minicpm3_config[] = {
    JSON("scale_emb", "12"),
    JSON("scale_depth", "1.4"),
    JSON("dim_model_base", "256"),
    END_OF_CONFIG,
};

/* ---- kimi-linear: latent attention in some layers, linear in the others ---- */

static const struct fs_hf_entry kimi_config[] = {
    COMMON_SIZES,
    KEY_OR("intermediate_size", "feed_forward_length", ""),
    COUNT_OF("q_lora_rank", "blk.%.attn_q_a.weight", write_rank),
    KEY("kv_lora_rank", "attention.kv_lora_rank"),
    CALL("widths", write_latent_widths),
    KINDS("layer_types", "blk.%.ssm_a", "linear_attention", "full_attention"),
    MLP_KINDS,
    KEY("linear_head_dim", "kda.head_dim"),
    COUNT_OF("linear_num_heads", "blk.%.ssm_beta.weight", fs_hf_write_rows),
    KEY("linear_conv_kernel_dim", "ssm.conv_kernel"),
    KEY("num_experts", "expert_count"),
    KEY("num_experts_per_token", "expert_used_count"),
    KEY_OR("num_shared_experts", "expert_shared_count", "0"),
    EXPERT_WIDTH,
    KEY_OR("routed_scaling_factor", "expert_weights_scale", "1.0"),
    JSON("moe_renormalize", "true"),
    KEY_OR("num_expert_group", "expert_group_count", "1"),
    KEY_OR("topk_group", "expert_group_used_count", "1"),
    END_OF_CONFIG,
};

const struct fs_hf_row fs_hf_rows_latent[] = {
    {"deepseek2", "DeepseekV3ForCausalLM", "deepseek_v3", gguf_naming_deepseek_v3,
     .applies = has_choice_bias,
     .config = CONFIG(TABLE(latent_config), RMS_NORM, SILU, TABLE(fs_hf_routed_config),
                      JSON("topk_method", "\"noaux_tc\""), BY_SIGMOID,
                      JSON("scoring_func", "\"sigmoid\""), JSON("rope_interleave", "true"),
                      JSON("num_nextn_predict_layers", "0"))},
    {"deepseek2", "DeepseekV2ForCausalLM", "deepseek_v2", gguf_naming_deepseek_v2,
     .config = CONFIG(TABLE(latent_config), RMS_NORM, SILU, TABLE(fs_hf_routed_config),
                      CALL("topk_method", write_choice_method), BY_SOFTMAX)},
    {"deepseek32", "DeepseekV32ForCausalLM", "deepseek_v32", gguf_naming_deepseek_v32,
     .needs = "blk.%.exp_probs_b.bias",
     .config = CONFIG(TABLE(latent_config), RMS_NORM, SILU, TABLE(fs_hf_routed_config),
                      TABLE(indexer_config), BY_SIGMOID)},
    {"glm-dsa", "GlmMoeDsaForCausalLM", "glm_moe_dsa", gguf_naming_deepseek_v32,
     .needs = "blk.%.exp_probs_b.bias",
     .config = CONFIG(TABLE(latent_config), RMS_NORM, SILU, TABLE(fs_hf_routed_config),
                      TABLE(indexer_config), BY_SIGMOID)},
    {"minicpm3", "MiniCPM3ForCausalLM", "minicpm3", gguf_naming_minicpm3,
     .config = CONFIG(TABLE(latent_config), RMS_NORM, SILU, TABLE(minicpm3_config))},
    {"kimi-linear", "KimiLinearForCausalLM", "kimi_linear", gguf_naming_kimi_linear,
     .config = CONFIG(TABLE(kimi_config), RMS_NORM, SILU, BY_SIGMOID)},
    {.architecture = NULL},
};
