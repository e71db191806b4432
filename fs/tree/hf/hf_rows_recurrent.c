/* Checkpoints of Mamba, and of hybrids of it and attention. */
#include "fs/tree/hf/hf_rows.h"

#include <inttypes.h>

/* Return the quotient of two keys, without which there is a problem. */
static uint64_t divide_keys(struct fs_hf_config *config, const char *a, const char *b)
{
    const uint64_t dividend = fs_hf_number(config->hf, a, 0);
    const uint64_t divisor = fs_hf_number(config->hf, b, 0);

    if (dividend == 0 || divisor == 0)
        fs_hf_problem(config, "its keys %s and %s are missing or 0", a, b);
    return divisor > 0 ? dividend / divisor : 0;
}

/* The width of the recurrence divided by the width of the embeddings. */
static void write_expand(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    fs_hf_member_unsigned(config, entry->name,
                          divide_keys(config, "ssm.inner_size", "embedding_length"));
}

/* The width of a recurrent head. */
static void write_ssm_head_dim(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    fs_hf_member_unsigned(config, entry->name,
                          divide_keys(config, "ssm.inner_size", "ssm.time_step_rank"));
}

/* ---- mamba ---- */

static const struct fs_hf_entry mamba_config[] = {
    KEY("hidden_size", "embedding_length"),
    CALL("num_hidden_layers", fs_hf_write_n_layer),
    KEY("state_size", "ssm.state_size"),
    KEY("conv_kernel", "ssm.conv_kernel"),
    CALL("expand", write_expand),
    KEY("layer_norm_epsilon", "attention.layer_norm_rms_epsilon"),
    HAS("use_conv_bias", "blk.%.ssm_conv1d.bias"),
    SILU,
    END_OF_CONFIG,
};

static const struct fs_hf_entry mamba1_config[] = {
    KEY("intermediate_size", "ssm.inner_size"),
    KEY("time_step_rank", "ssm.time_step_rank"),
    END_OF_CONFIG,
};

static bool has_inner_norms(const struct fs_hf_model *hf)
{
    return fs_hf_bool(hf, "ssm.dt_b_c_rms", false);
}

/* ---- recurrent layers of hybrids ---- */

static const struct fs_hf_entry hybrid_mamba2_config[] = {
    KEY("mamba_n_heads", "ssm.time_step_rank"),
    CALL("mamba_d_head", write_ssm_head_dim),
    KEY("mamba_n_groups", "ssm.group_count"),
    KEY("mamba_d_state", "ssm.state_size"),
    KEY("mamba_d_conv", "ssm.conv_kernel"),
    CALL("mamba_expand", write_expand),
    HAS("mamba_conv_bias", "blk.%.ssm_conv1d.bias"),
    ATTENTION_BIAS,
    END_OF_CONFIG,
};

/* ---- granitehybrid: Granite 4 and Bamba ---- */

/* Bamba has none of Granite's scales. */
static bool is_bamba(const struct fs_hf_model *hf)
{
    return !fs_hf_key(hf, "embedding_scale") && !fs_hf_key(hf, "residual_scale") &&
           !fs_hf_key(hf, "attention.scale") && !fs_hf_key(hf, "logit_scale");
}

/* Bamba's class rotates half of a head. */
static const struct fs_hf_entry bamba_config[] = {
    COUNT_OF("attn_layer_indices", "blk.%.attn_q.weight", fs_hf_write_layers_with),
    ROPE,
    JSON("partial_rotary_factor", "0.5"),
    MLP_BIAS,
    END_OF_CONFIG,
};

static void write_granite_rotation(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const struct fs_hf_model *hf = config->hf;
    const bool is_rotated = fs_hf_bool(hf, "rope.scaling.finetuned", false) ||
                            !fs_hf_any_tensor(hf, "blk.%.ssm_in.weight");

    for (uint64_t i = 0; i < fs_hf_n_layer(hf) && fs_hf_number(hf, "expert_count", 0) > 0; i++) {
        if (!fs_hf_layer_has(hf, i, "blk.%.ffn_gate_inp.weight"))
            fs_hf_problem(config,
                          "layer %" PRIu64 " has no experts, as its class has in all layers", i);
    }
    fs_hf_member_json(config, entry->name, is_rotated ? "\"rope\"" : "null");
    fs_hf_member_unsigned(config, "shared_intermediate_size",
                          fs_hf_number(hf, "expert_shared_feed_forward_length",
                                       fs_hf_number(hf, "feed_forward_length", 0)));
}

static const struct fs_hf_entry granite_hybrid_config[] = {
    GRANITE_SCALES,
    KEY_OR("logits_scaling", "logit_scale", "1.0"),
    KEY_OR("num_local_experts", "expert_count", "0"),
    KEY_OR("num_experts_per_tok", "expert_used_count", "0"),
    KINDS("layer_types", "blk.%.attn_q.weight", "attention", "mamba"),
    CALL("position_embedding_type", write_granite_rotation),
    ROPE,
    END_OF_CONFIG,
};

/* ---- jamba ---- */

/* Write the period and the offset of the layers that have a tensor. */
static void write_period(struct fs_hf_config *config, const char *period, const char *offset,
                         const char *pattern)
{
    const uint64_t n_layer = fs_hf_n_layer(config->hf);
    uint64_t first = 0, second;

    while (first < n_layer && !fs_hf_layer_has(config->hf, first, pattern))
        first++;
    second = first + 1;
    while (second < n_layer && !fs_hf_layer_has(config->hf, second, pattern))
        second++;
    for (uint64_t i = second; second < n_layer && i < n_layer; i++) {
        if (fs_hf_layer_has(config->hf, i, pattern) != ((i - first) % (second - first) == 0))
            fs_hf_problem(config, "%s is not the same in all layers, see layer %" PRIu64, period,
                          i);
    }
    /* The offset must be less than the period. */
    fs_hf_member_unsigned(config, period,
                          second < n_layer ? second - first : n_layer + (first == n_layer));
    fs_hf_member_unsigned(config, offset, first);
}

static void write_jamba_layers(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    (void)entry;
    write_period(config, "attn_layer_period", "attn_layer_offset", "blk.%.attn_q.weight");
    write_period(config, "expert_layer_period", "expert_layer_offset", "blk.%.ffn_gate_inp.weight");
}

static const struct fs_hf_entry jamba_config[] = {
    KEY("mamba_d_state", "ssm.state_size"),
    KEY("mamba_d_conv", "ssm.conv_kernel"),
    CALL("mamba_expand", write_expand),
    KEY("mamba_dt_rank", "ssm.time_step_rank"),
    HAS("mamba_conv_bias", "blk.%.ssm_conv1d.bias"),
    KEY_OR("num_experts", "expert_count", "1"),
    KEY_OR("num_experts_per_tok", "expert_used_count", "1"),
    CALL("layers", write_jamba_layers),
    END_OF_CONFIG,
};

/* ---- falcon-h1: its multipliers are in the weights ---- */

static const struct fs_hf_entry falcon_h1_config[] = {
    KEY("mamba_d_ssm", "ssm.inner_size"),
    HAS("mamba_rms_norm", "blk.%.ssm_norm"),
    MLP_BIAS,
    ROPE,
    JSON("embedding_multiplier", "1.0"),
    JSON("lm_head_multiplier", "1.0"),
    JSON("key_multiplier", "1.0"),
    JSON("attention_in_multiplier", "1.0"),
    JSON("attention_out_multiplier", "1.0"),
    JSON("ssm_in_multiplier", "1.0"),
    JSON("ssm_out_multiplier", "1.0"),
    JSON("ssm_multipliers", "[1.0, 1.0, 1.0, 1.0, 1.0]"),
    JSON("mlp_multipliers", "[1.0, 1.0]"),
    END_OF_CONFIG,
};

/* ---- nemotron_h: a mixer or a feed-forward per layer ---- */

static const struct fs_hf_entry nemotron_sizes[] = {
    KEY("hidden_size", "embedding_length"),
    COUNT_OF("intermediate_size", "blk.%.ffn_up.weight", fs_hf_write_rows),
    CALL("num_hidden_layers", fs_hf_write_n_layer),
    COUNT_OF("num_attention_heads", "attention.head_count", fs_hf_write_largest),
    CALL("num_key_value_heads", fs_hf_write_hybrid_n_head_kv),
    KEY("max_position_embeddings", "context_length"),
    END_OF_CONFIG,
};

static const struct fs_hf_entry nemotron_h_config[] = {
    KINDS("layers_block_type", "blk.%.attn_q.weight", "attention", "blk.%.ssm_in.weight", "mamba",
          "blk.%.ffn_gate_inp.weight", "moe", "mlp"),
    HEAD_DIM,
    KEY("mamba_num_heads", "ssm.time_step_rank"),
    CALL("mamba_head_dim", write_ssm_head_dim),
    KEY("n_groups", "ssm.group_count"),
    KEY("ssm_state_size", "ssm.state_size"),
    KEY("conv_kernel", "ssm.conv_kernel"),
    KEY("layer_norm_epsilon", "attention.layer_norm_rms_epsilon"),
    HAS("use_conv_bias", "blk.%.ssm_conv1d.bias"),
    JSON("mlp_hidden_act", "\"relu2\""),
    JSON("num_nextn_predict_layers", "0"),
    JSON("mtp_layers_block_type", "[]"),
    END_OF_CONFIG,
};

static const struct fs_hf_entry nemotron_moe_config[] = {
    KEY("n_routed_experts", "expert_count"),
    KEY("num_experts_per_tok", "expert_used_count"),
    KEY_OR("n_shared_experts", "expert_shared_count", "1"),
    EXPERT_WIDTH,
    KEY("moe_shared_expert_intermediate_size", "expert_shared_feed_forward_length"),
    KEY_OR("routed_scaling_factor", "expert_weights_scale", "1.0"),
    KEY_OR("norm_topk_prob", "expert_weights_norm", "false"),
    EXPERT_GROUPS,
    END_OF_CONFIG,
};

const struct fs_hf_row fs_hf_rows_recurrent[] = {
    {"mamba", "FalconMambaForCausalLM", "falcon_mamba", gguf_naming_falcon_mamba,
     .applies = has_inner_norms, .config = CONFIG(TABLE(mamba_config), TABLE(mamba1_config))},
    {"mamba", "MambaForCausalLM", "mamba", gguf_naming_falcon_mamba,
     .config = CONFIG(TABLE(mamba_config), TABLE(mamba1_config))},
    {"mamba2", "Mamba2ForCausalLM", "mamba2", gguf_naming_mamba2,
     .config = CONFIG(TABLE(mamba_config), KEY("num_heads", "ssm.time_step_rank"),
                      CALL("head_dim", write_ssm_head_dim), KEY("n_groups", "ssm.group_count"))},
    {"granitehybrid", "BambaForCausalLM", "bamba", gguf_naming_bamba, .applies = is_bamba,
     .config = CONFIG(TABLE(fs_hf_hybrid_sizes), RMS_NORM, SILU, TABLE(hybrid_mamba2_config),
                      TABLE(bamba_config))},
    {"granitehybrid", "GraniteMoeHybridForCausalLM", "granitemoehybrid",
     gguf_naming_granitemoehybrid,
     .config = CONFIG(TABLE(fs_hf_hybrid_sizes), RMS_NORM, SILU, TABLE(hybrid_mamba2_config),
                      TABLE(granite_hybrid_config))},
    {"jamba", "JambaForCausalLM", "jamba", gguf_naming_jamba,
     .config = CONFIG(TABLE(fs_hf_hybrid_sizes), RMS_NORM, SILU, TABLE(jamba_config))},
    {"falcon-h1", "FalconH1ForCausalLM", "falcon_h1", gguf_naming_falcon_h1,
     .config = CONFIG(TABLE(fs_hf_hybrid_sizes), HEAD_DIM, RMS_NORM, SILU,
                      TABLE(hybrid_mamba2_config), TABLE(falcon_h1_config))},
    {"nemotron_h", "NemotronHForCausalLM", "nemotron_h", gguf_naming_nemotron_h,
     .needs = "blk.%.exp_probs_b.bias",
     .config = CONFIG(TABLE(nemotron_sizes), TABLE(nemotron_h_config), MLP_BIAS)},
    {"nemotron_h_moe", "NemotronHForCausalLM", "nemotron_h", gguf_naming_nemotron_h,
     .needs = "blk.%.exp_probs_b.bias",
     .config = CONFIG(TABLE(nemotron_sizes), TABLE(nemotron_h_config), TABLE(nemotron_moe_config))},
    {.architecture = NULL},
};
